"""Sample rollouts as a two-role script that a person can read."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
_UNSEEN = ("Cc", "Cf", "Cs")
_SPEAKERS = {"code": "checked by code", "environment": "true environment"}


@dataclass(frozen=True, slots=True)
class Line:
    """One thing said. `speaker` is user, act, rehearse, or who else answered a call; text not escaped for any page."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """One rollout: where it comes from, how it ended, and what was said."""

    title: str
    lines: list[Line]


def samples(rows: Sequence[Row]) -> list[Transcript]:
    """The best and the worst rollout of the last step, of those in which the policy played both roles where it did."""
    scored = [r for r in rows if r["reward"] is not None]
    pool = [r for r in scored if any(o["role"] == "rehearse" for o in r["outputs"])] or scored
    last = [r for r in pool if r["step"] == max(r["step"] for r in pool)]
    ordered = sorted(last, key=lambda r: (-r["reward"], r["task_id"], r["rollout_index"]))
    chosen = [ordered[0], ordered[-1]] if len(ordered) > 1 else ordered
    return [Transcript(_title(row), list(script(row))) for row in chosen]


def script(row: Row) -> Iterator[Line]:
    """Everything said in a rollout, in order."""
    for index, turn in enumerate(row["turns"]):
        yield Line("user", visible(turn["user"]))
        waiting = [observation for step in turn["steps"] for observation in step["observations"]]
        for output in (o for o in row["outputs"] if o["turn_index"] == index):
            yield from _answered_otherwise(waiting)
            yield Line(output["role"], visible(output["text"]))
            if output["role"] == "rehearse" and waiting:
                waiting.pop(0)
        yield from _answered_otherwise(waiting)


def visible(text: str) -> str:
    """Control and direction-changing characters spelled out, so that a text shows as what it is."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in _UNSEEN else f"\\u{ord(c):04x}" for c in text)


def _answered_otherwise(waiting: list[dict[str, Any]]) -> Iterator[Line]:
    """Takes off what stands at the front and was not rehearsed."""
    while waiting and waiting[0]["source"] != "rehearsed":
        found = waiting.pop(0)
        source: str = found["source"]
        yield Line(_SPEAKERS.get(source, source), visible(found["content"]))


def _title(row: Row) -> str:
    ending = "success" if row["success"] else row["stop_reason"].replace("_", " ")
    return f"{row['phase']} at step {row['step']}, task {visible(row['task_id'])}: reward {row['reward']:.2f}, {ending}"
