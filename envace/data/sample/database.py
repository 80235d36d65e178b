"""The fixed database of the sample world, drawn once from a seed and never changed by any call."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from envace.data.sample.vocabulary import COMMON, RESERVED, Pools

Row = dict[str, Any]


@dataclass(frozen=True)
class Database:
    """All facts of the world, each table keyed by what its tool is asked for. Rows are results, key order included."""

    orders: dict[str, Row]
    parcel_places: dict[str, str]
    weather: dict[tuple[str, str], Row]
    alerts: dict[str, str]
    balances: dict[str, int]
    events: dict[str, Row]
    stock: dict[str, Row]
    flights: dict[tuple[str, str], Row]
    hotels: dict[str, Row]
    phones: dict[str, str]


def build_database(seed: int) -> Database:
    """Draw the database. The common values are drawn first, so that adding reserved ones leaves them as they were."""
    database = Database({}, {}, {}, {}, {}, {}, {}, {}, {}, {})
    ids = _Ids(random.Random(f"ids {seed}"))
    _fill(database, COMMON, random.Random(f"common {seed}"), ids, people_without_order=2)
    _fill(database, RESERVED, random.Random(f"reserved {seed}"), ids, people_without_order=1)
    every_city, every_day = COMMON.cities + RESERVED.cities, COMMON.days + RESERVED.days
    rest = random.Random(f"mixed weather {seed}")
    for city in every_city:  # a reserved city on a common day and the other way round
        for day in every_day:
            database.weather.setdefault((city, day), _weather(rest))
    return database


class _Ids:
    """Hands out short ids (a letter and two digits), none twice."""

    def __init__(self, rng: random.Random) -> None:
        self._free = {letter: rng.sample(range(10, 99), 89) for letter in "AEFHP"}

    def __call__(self, letter: str) -> str:
        return f"{letter}{self._free[letter].pop()}"


def _fill(database: Database, pools: Pools, rng: random.Random, ids: _Ids, people_without_order: int) -> None:
    customers = rng.sample(pools.names, len(pools.names) - people_without_order)
    for name in customers:
        order = {"order": ids("A"), "item": rng.choice(pools.items), "status": rng.choice(["open", "open", "shipped"])}
        database.orders[name] = order
        database.parcel_places[order["order"]] = rng.choice(pools.cities)
    for city in pools.cities:
        for day in pools.days:
            database.weather[city, day] = _weather(rng)
        database.alerts[city] = rng.choice(["none", "none", "storm", "heat", "flood"])
        database.hotels[city] = {"hotel": ids("H"), "price": rng.choice(range(40, 200, 20))}
    for name in pools.names:
        database.balances[name] = rng.choice(range(50, 1000, 50))
        database.phones[name] = ids("P")
    for day in pools.days[:-1]:  # the last day is free: asking for it is an error that must be understood
        event = {"event": ids("E"), "title": rng.choice(pools.titles), "hour": rng.choice(range(8, 19))}
        database.events[day] = event
    for position, item in enumerate(pools.items):
        left = rng.choice([0, 2, 5, 9]) if position > 1 else (0, 5)[position]  # both cases exist in every world
        database.stock[item] = {"stock": left, "price": rng.choice(range(5, 100, 5))}
    for origin in pools.flight_cities:
        for target in pools.flight_cities:
            if origin != target:
                database.flights[origin, target] = {"flight": ids("F"), "price": rng.choice(range(50, 500, 50))}


def _weather(rng: random.Random) -> Row:
    return {"sky": rng.choice(["sunny", "rainy", "cloudy", "snowy"]), "temp": rng.choice(range(0, 36, 5))}
