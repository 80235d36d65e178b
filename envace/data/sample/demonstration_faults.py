"""The systematic faults of demonstrations: what a careless assistant does, and what a careless imagination answers."""

from __future__ import annotations

import random
from typing import Any

from envace.data.sample.turns import SampleTurn
from envace.data.sample.turns.turn import call as make_call
from envace.data.sample.vocabulary import SWAPPABLE
from envace.data.sample.world import World
from envace.files import compact_json
from envace.types import ToolCall

Steps = tuple[tuple[ToolCall, ...], ...]
DOMINANT_FAULTS: dict[str, tuple[str, ...]] = {
    "bank": ("forbidden", "bare_reply"),
    "calendar": ("bare_reply",),
    "contacts": ("drop_step", "drop_parallel"),
    "inventory": ("forbidden", "drop_parallel", "bare_reply"),
    "orders": ("drop_step", "forbidden"),
    "travel": ("bare_reply",),
    "weather": ("drop_parallel", "bare_reply"),
}
"""The habit of each domain, best fit first: one fault that is frequent enough for a greedy policy to repeat it."""


def corrupt_answer(
    turn: SampleTurn, rng: random.Random, random_rate: float, dominant_rate: float
) -> tuple[Steps, str, str | None]:
    """The steps and reply of a turn, with at most one fault, and the fault's name (None where there is none)."""
    is_random, is_dominant = rng.random() < random_rate, rng.random() < dominant_rate
    possible = _possible_faults(turn)
    habits = [fault for fault in DOMINANT_FAULTS[turn.domain] if fault in possible] if is_dominant else []
    if habits:
        fault = habits[0]
    elif is_random:
        fault = rng.choice(possible)
    else:
        return turn.steps, turn.reply, None
    return *_apply(fault, turn, rng), fault


def corrupt_result(
    world: World, call: ToolCall, result: str, rng: random.Random, rate: float
) -> tuple[str, str | None]:
    """The result of a call, at the given rate replaced by a wrong one, and the fault's name (None where right)."""
    if rng.random() >= rate:
        return result, None
    fault = rng.choice(["malformed", "false_error", "wrong_value"])
    if fault == "malformed":
        return result[:-1], fault
    mistaken = _mistake(call, rng) if fault == "wrong_value" else None
    if mistaken is None:
        return compact_json({"error": "not found"}), "false_error"
    return compact_json(world.execute(mistaken.tool_name, mistaken.parsed())), fault


def _possible_faults(turn: SampleTurn) -> list[str]:
    """The faults a turn can have; listed more than once where they should be drawn more often."""
    faults = ["bare_reply"]
    if turn.steps:
        faults += ["skip_call", "wrong_arg"]
    if len(turn.steps) > 1:
        faults += ["drop_step"] * 2
    if any(len(step) > 1 for step in turn.steps):
        faults += ["drop_parallel"] * 2
    if turn.tempting_call:
        faults += ["forbidden"] * 3
    return faults


def _apply(fault: str, turn: SampleTurn, rng: random.Random) -> tuple[Steps, str]:
    steps, reply = turn.steps, turn.reply
    if fault == "bare_reply":
        reply = rng.choice(["Done.", "OK."])
    elif fault == "skip_call":
        steps = ()
    elif fault == "wrong_arg":
        steps = _with_wrong_argument(steps, rng)
    elif fault == "drop_step":
        steps = steps[:-1]
    elif fault == "drop_parallel":
        steps = tuple(step[:1] for step in steps)
    elif fault == "forbidden" and turn.tempting_call:
        steps = (*steps, (turn.tempting_call,))
    return steps, reply


def _with_wrong_argument(steps: Steps, rng: random.Random) -> Steps:
    places = [(s, c) for s, step in enumerate(steps) for c in range(len(step))]
    rng.shuffle(places)
    for s, c in places:
        mistaken = _mistake(steps[s][c], rng)
        if mistaken:
            step = (*steps[s][:c], mistaken, *steps[s][c + 1 :])
            return (*steps[:s], step, *steps[s + 1 :])
    return steps


def _mistake(call: ToolCall, rng: random.Random) -> ToolCall | None:
    """The same call with one argument mistaken for a similar value; None where it has only ids."""
    arguments: dict[str, Any] = call.parsed()
    keys = list(arguments)
    rng.shuffle(keys)
    for key in keys:
        value = arguments[key]
        if isinstance(value, int):
            return make_call(call.tool_name, {**arguments, key: value + rng.choice([1, 2, 5])})
        pool = next((pool for pool in SWAPPABLE if value in pool), None)
        if pool:
            other = rng.choice([x for x in pool if x != value])
            return make_call(call.tool_name, {**arguments, key: other})
    return None
