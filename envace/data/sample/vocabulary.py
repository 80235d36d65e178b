"""The words of the sample world: what its people, cities, days and things are called.

Two sets that share no value. `COMMON` fills the training and held-out conversations, `RESERVED` only the hard ones, so
that a policy trained on the first meets values there that it has never seen. The database knows both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Pools:
    """The values that conversations of one kind may mention. Flights connect only `flight_cities`."""

    names: tuple[str, ...]
    cities: tuple[str, ...]
    flight_cities: tuple[str, ...]
    days: tuple[str, ...]
    items: tuple[str, ...]
    titles: tuple[str, ...]


COMMON = Pools(
    names=("Ana", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "Kim", "Lea", "Zoë"),
    cities=("Paris", "Rome", "Oslo", "Lima", "Cairo", "Tokyo", "Köln", "Delhi"),
    flight_cities=("Paris", "Rome", "Oslo", "Lima", "Cairo"),
    days=("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
    items=("lamp", "desk", "chair", "pen", "mug", "book", "bag", "fan", "clock", "phone"),
    titles=("lunch", "demo", "gym", "call", "review", "party"),
)
RESERVED = Pools(
    names=("Nils", "Olga", "Raúl", "Vera", "Åsa"),
    cities=("Bern", "Quito", "Seoul", "Málaga"),
    flight_cities=("Bern", "Quito", "Seoul", "Málaga"),
    days=("Saturday", "Sunday"),
    items=("sofa", "towel", "kettle", "wallet"),
    titles=("picnic", "exam", "dinner"),
)
MESSAGE_TEXTS = ("hello", "call me", "I am late", "see you soon", "thank you")
RETURN_REASONS = ("broken", "late", "wrong color", "too small")

SWAPPABLE = (COMMON.names, COMMON.cities, COMMON.days, COMMON.items, COMMON.titles, MESSAGE_TEXTS, RETURN_REASONS)
"""Sets inside which one value can be mistaken for another (used to make plausible wrong arguments)."""

_RESERVED_WORDS = frozenset(
    RESERVED.names + RESERVED.cities + RESERVED.days + RESERVED.items + RESERVED.titles,
)


def mentions_reserved(text: str) -> bool:
    """True where `text` holds a value that only hard conversations use."""
    return not _RESERVED_WORDS.isdisjoint(re.findall(r"\w+", text))
