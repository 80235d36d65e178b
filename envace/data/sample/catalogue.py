"""The 20 tools of the sample world: their names, descriptions and parameters, as schemas."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from envace.files import compact_json, sha256_text
from envace.types import ToolSpec


@dataclass(frozen=True)
class CatalogueTool:
    """One tool. `parameters` maps each argument's name to its JSON type; all arguments are required."""

    domain: str
    description: str
    parameters: dict[str, str]


def _tool(domain: str, description: str, **parameters: str) -> CatalogueTool:
    # `from` is a keyword of Python, so the two tools that need it write `from_`
    return CatalogueTool(domain, description, {key.rstrip("_"): kind for key, kind in parameters.items()})


TEXT, WHOLE = "string", "integer"
CATALOGUE: dict[str, CatalogueTool] = {
    "find_order": _tool("orders", "Find the order of a customer", customer=TEXT),
    "cancel_order": _tool("orders", "Cancel an order", order=TEXT),
    "return_order": _tool("orders", "Return an order", order=TEXT, reason=TEXT),
    "track_order": _tool("orders", "Where the parcel of an order is", order=TEXT),
    "get_weather": _tool("weather", "Weather of a city on a day", city=TEXT, day=TEXT),
    "get_alert": _tool("weather", "Weather alert of a city", city=TEXT),
    "get_balance": _tool("bank", "Balance of an owner", owner=TEXT),
    "transfer": _tool("bank", "Send money, at most 500", from_=TEXT, to=TEXT, amount=WHOLE),
    "list_events": _tool("calendar", "Events of a day", day=TEXT),
    "add_event": _tool("calendar", "Add an event", title=TEXT, day=TEXT, hour=WHOLE),
    "remove_event": _tool("calendar", "Remove an event", event=TEXT),
    "check_stock": _tool("inventory", "Stock and price of an item", item=TEXT),
    "reserve": _tool("inventory", "Reserve an item", item=TEXT, customer=TEXT),
    "restock": _tool("inventory", "Order more of an item", item=TEXT, count=WHOLE),
    "search_flight": _tool("travel", "Find a flight", from_=TEXT, to=TEXT),
    "book_flight": _tool("travel", "Book a flight", flight=TEXT, passenger=TEXT),
    "find_hotel": _tool("travel", "Find a hotel", city=TEXT),
    "book_hotel": _tool("travel", "Book a hotel", hotel=TEXT, nights=WHOLE),
    "find_phone": _tool("contacts", "Phone of a person", name=TEXT),
    "send_message": _tool("contacts", "Send a message", phone=TEXT, text=TEXT),
}
DOMAINS: tuple[str, ...] = tuple(sorted({tool.domain for tool in CATALOGUE.values()}))


def parameters_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of one tool's arguments. Raises KeyError for an unknown tool."""
    properties = {key: {"type": kind} for key, kind in CATALOGUE[name].parameters.items()}
    return {"type": "object", "properties": properties, "required": list(properties)}


@cache
def tool_spec(name: str) -> ToolSpec:
    """One tool as the canonical record holds it. Raises KeyError for an unknown tool."""
    text = compact_json(parameters_schema(name))
    description = CATALOGUE[name].description
    return ToolSpec(name=name, description=description, parameters_schema=text, schema_sha256=sha256_text(text))
