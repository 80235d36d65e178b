"""What went on in the rehearsals and with the judge, by training step, from the saved rollouts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from envace.chat.parser import parse_response

VERDICTS = ("pass", "fail", "unknown")


@dataclass(frozen=True, slots=True)
class Health:
    """By training step: shares of rehearsed results that are no JSON object or list, and that are errors; and of the
    judge's verdicts by what they say. A step without rehearsals, or without verdicts, is left out."""

    malformed: dict[int, float]
    errors: dict[int, float]
    verdicts: dict[int, dict[str, float]]
    judged: int

    @property
    def unknown(self) -> float | None:
        """The share of unknown verdicts in the last judged step; None where nothing was judged."""
        return next(reversed(self.verdicts.values()))["unknown"] if self.verdicts else None


def health(rows: Iterable[Mapping[str, Any]]) -> Health:
    """Rows as `read_rollouts` gives them; validation is left out."""
    rehearsed: dict[int, list[Any]] = defaultdict(list)
    given: dict[int, Counter[str]] = defaultdict(Counter)
    for row in rows:
        if row["phase"] == "train":
            step = row["step"]
            rehearsed[step] += [parse_response(o["text"]) for o in row["outputs"] if o["role"] == "rehearse"]
            for turn in row["turns"]:
                given[step].update((turn.get("verdicts") or {}).values())
    steps = sorted(step for step, found in rehearsed.items() if found)
    judged = sorted(step for step, counted in given.items() if counted)
    return Health(
        malformed={s: _share(value is None for value in rehearsed[s]) for s in steps},
        errors={s: _share(isinstance(value, dict) and "error" in value for value in rehearsed[s]) for s in steps},
        verdicts={s: {v: given[s][v] / given[s].total() for v in VERDICTS} for s in judged},
        judged=sum(given[s].total() for s in judged),
    )


def _share(flags: Iterable[bool]) -> float:
    found = list(flags)
    return sum(found) / len(found)
