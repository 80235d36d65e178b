"""What each tool of the sample world answers: one small pure function a tool over the fixed database.

Reads look something up; writes acknowledge and change nothing, so that the same call always has the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from envace.data.sample.database import Database

Arguments = Mapping[str, Any]
Answer = dict[str, Any]


def error(reason: str = "not found") -> Answer:
    """The answer of a call that failed."""
    return {"error": reason}


def _row(table: Mapping[Any, Answer], key: Any, reason: str = "not found") -> Answer:
    return dict(table[key]) if key in table else error(reason)


def _known(table: Mapping[Any, Answer], field: str, value: str) -> bool:
    return any(row[field] == value for row in table.values())


def _cancel_order(db: Database, a: Arguments) -> Answer:
    order = next((row for row in db.orders.values() if row["order"] == a["order"]), None)
    if order is None:
        return error()
    return error("shipped") if order["status"] == "shipped" else {"order": a["order"], "cancelled": True}


def _return_order(db: Database, a: Arguments) -> Answer:
    return {"order": a["order"], "returned": True} if _known(db.orders, "order", a["order"]) else error()


def _track_order(db: Database, a: Arguments) -> Answer:
    place = db.parcel_places.get(a["order"])
    return {"order": a["order"], "place": place} if place else error()


def _get_alert(db: Database, a: Arguments) -> Answer:
    return {"city": a["city"], "alert": db.alerts[a["city"]]} if a["city"] in db.alerts else error()


def _get_balance(db: Database, a: Arguments) -> Answer:
    return {"owner": a["owner"], "balance": db.balances[a["owner"]]} if a["owner"] in db.balances else error()


def _transfer(db: Database, a: Arguments) -> Answer:
    if a["amount"] > 500:
        return error("over limit")
    return {"sent": a["amount"], "to": a["to"]} if a["from"] in db.balances and a["to"] in db.balances else error()


def _remove_event(db: Database, a: Arguments) -> Answer:
    return {"removed": a["event"]} if _known(db.events, "event", a["event"]) else error()


def _check_stock(db: Database, a: Arguments) -> Answer:
    return {"item": a["item"], **db.stock[a["item"]]} if a["item"] in db.stock else error()


def _reserve(db: Database, a: Arguments) -> Answer:
    if a["item"] not in db.stock:
        return error()
    in_stock = db.stock[a["item"]]["stock"] > 0
    return {"reserved": a["item"], "customer": a["customer"]} if in_stock else error("no stock")


def _restock(db: Database, a: Arguments) -> Answer:
    return {"item": a["item"], "ordered": a["count"]} if a["item"] in db.stock else error()


def _book_flight(db: Database, a: Arguments) -> Answer:
    known = _known(db.flights, "flight", a["flight"])
    return {"flight": a["flight"], "booked": a["passenger"]} if known else error()


def _book_hotel(db: Database, a: Arguments) -> Answer:
    return {"hotel": a["hotel"], "nights": a["nights"]} if _known(db.hotels, "hotel", a["hotel"]) else error()


def _find_phone(db: Database, a: Arguments) -> Answer:
    return {"name": a["name"], "phone": db.phones[a["name"]]} if a["name"] in db.phones else error()


def _send_message(db: Database, a: Arguments) -> Answer:
    return {"sent": a["text"], "phone": a["phone"]} if a["phone"] in db.phones.values() else error()


HANDLERS: dict[str, Callable[[Database, Arguments], Answer]] = {
    "find_order": lambda db, a: _row(db.orders, a["customer"]),
    "cancel_order": _cancel_order,
    "return_order": _return_order,
    "track_order": _track_order,
    "get_weather": lambda db, a: _row(db.weather, (a["city"], a["day"])),
    "get_alert": _get_alert,
    "get_balance": _get_balance,
    "transfer": _transfer,
    "list_events": lambda db, a: _row(db.events, a["day"], "no events"),
    "add_event": lambda db, a: {"added": a["title"], "day": a["day"], "hour": a["hour"]},
    "remove_event": _remove_event,
    "check_stock": _check_stock,
    "reserve": _reserve,
    "restock": _restock,
    "search_flight": lambda db, a: _row(db.flights, (a["from"], a["to"]), "no flight"),
    "book_flight": _book_flight,
    "find_hotel": lambda db, a: _row(db.hotels, a["city"]),
    "book_hotel": _book_hotel,
    "find_phone": _find_phone,
    "send_message": _send_message,
}
