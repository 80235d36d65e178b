"""One line of a diagnosis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is, and, unless it is ok, what to do about it.

    A warning is worth knowing and stops nothing; with a problem a run fails or gives something else than it should.
    """

    about: str
    level: Level
    says: str
    todo: str = ""


def ok(about: str, says: str) -> Finding:
    """Nothing to do."""
    return Finding(about, "ok", says)


def warning(about: str, says: str, todo: str) -> Finding:
    """Worth knowing."""
    return Finding(about, "warning", says, todo)


def problem(about: str, says: str, todo: str) -> Finding:
    """To be mended."""
    return Finding(about, "problem", says, todo)
