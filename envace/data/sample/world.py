"""The sample world: a database with tools that code can really execute. The true environment of every sample task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from envace.data.sample.catalogue import CATALOGUE, TEXT, parameters_schema
from envace.data.sample.database import Database, build_database
from envace.data.sample.handlers import HANDLERS, error


@dataclass(frozen=True)
class World:
    """A world of one seed. `execute` is a pure function of (seed, tool, arguments)."""

    seed: int
    database: Database

    @property
    def tool_names(self) -> tuple[str, ...]:
        """All tools, in the order of the catalogue."""
        return tuple(CATALOGUE)

    def tool_schema(self, name: str) -> dict[str, Any]:
        """One tool in the OpenAI function wrapper. Raises KeyError for an unknown tool."""
        function = {
            "name": name,
            "description": CATALOGUE[name].description,
            "parameters": parameters_schema(name),
        }
        return {"type": "function", "function": function}

    def execute(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The true answer to one call. Never raises for a wrong call: that is an answer too, `{"error": reason}`."""
        if tool_name not in CATALOGUE:
            return error("unknown tool")
        kinds = CATALOGUE[tool_name].parameters
        if set(arguments) != set(kinds) or not all(_is(arguments[key], kind) for key, kind in kinds.items()):
            return error("bad arguments")
        return HANDLERS[tool_name](self.database, arguments)


def build_world(seed: int) -> World:
    """The world of a seed. The same seed gives the same world on every machine."""
    return World(seed, build_database(seed))


def _is(value: Any, kind: str) -> bool:
    if kind == TEXT:
        return isinstance(value, str)
    return isinstance(value, int) and not isinstance(value, bool)
