"""The tools of large rows: the catalogue's schemas with full descriptions and examples, worded anew for each row.

Real corpora have thousands of different tool schemas. So have these: what validation remembers of one row's tools helps
it little with the next one's.
"""

from __future__ import annotations

import random
from typing import Any

from envace.data.sample.catalogue import CATALOGUE, parameters_schema
from envace.data.sample.long_texts import ARGUMENTS, DETAILS
from envace.data.sample.vocabulary import MESSAGE_TEXTS, RETURN_REASONS, Pools

_ID_LETTERS = {"order": "A", "event": "E", "flight": "F", "hotel": "H", "phone": "P"}
_NUMBERS = {"amount": range(50, 501, 50), "count": range(10, 60, 10), "hour": range(8, 19), "nights": range(1, 5)}


def long_tools(names: list[str], pools: Pools, rng: random.Random) -> dict[str, dict[str, Any]]:
    """The tools of one row by name, in the OpenAI function wrapper."""
    examples = {argument: _example(argument, pools, rng) for argument in ARGUMENTS}
    return {name: _long_tool(name, examples) for name in names}


def _long_tool(name: str, examples: dict[str, Any]) -> dict[str, Any]:
    parameters = parameters_schema(name)
    for argument, schema in parameters["properties"].items():
        schema["description"] = f"{ARGUMENTS[argument]}, for example {examples[argument]}"
    description = f"{CATALOGUE[name].description}. {DETAILS[name]}"
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _example(argument: str, pools: Pools, rng: random.Random) -> Any:
    if argument in _ID_LETTERS:
        return f"{_ID_LETTERS[argument]}{rng.randrange(10, 99)}"
    if argument in _NUMBERS:
        return rng.choice(_NUMBERS[argument])
    texts = {
        "city": pools.cities,
        "day": pools.days,
        "from": pools.flight_cities + pools.names,
        "item": pools.items,
        "reason": RETURN_REASONS,
        "text": MESSAGE_TEXTS,
        "title": pools.titles,
        "to": pools.flight_cities + pools.names,
    }
    return rng.choice(texts.get(argument, pools.names))
