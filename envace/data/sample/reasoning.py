"""The reasoning of large rows: what a careful assistant thinks before it calls, before it replies, and beyond that."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from envace.data.sample.catalogue import CATALOGUE, TEXT
from envace.data.sample.long_texts import ARGUMENTS, DETAILS
from envace.data.sample.turns import SampleTurn
from envace.data.sample.world import World
from envace.files import compact_json
from envace.types import ToolCall

_PASSED_OVER = (
    "{tool} is not what I need here: {what}.",
    "I could think of {tool}, but that is another matter ({what}).",
    "{tool} stays out of it, nobody asks for that: {what}.",
    "What about {tool}? {what}. Not now.",
)
_ARGUMENT = (
    "{tool} takes {argument}, {kind}: {meaning}.",
    "To call {tool}, I would have to know {argument}, {kind} ({meaning}).",
)
_WHY_END = {
    "refuse": "The rules forbid {tool} here, so I make no call and say why.",
    "chain_refuse": "After this answer {tool} is not possible, so I stop here and say why.",
    "none": "No call can help with this, so I answer at once.",
    "error": "The tool found nothing, which is an answer too: I say what it means.",
}


def thought_before_calls(world: World, turn: SampleTurn, step: int) -> str:
    """What is asked, what is known from the step before, which calls follow and with what arguments."""
    lines = [f"Now I have: {_answers(world, turn, step - 1)}." if step else f'The user says: "{turn.user_message}"']
    for call in turn.steps[step]:
        tool = CATALOGUE[call.tool_name]
        lines.append(f"I need {call.tool_name} ({tool.description.lower()}). {DETAILS[call.tool_name]}")
        lines += [f"{key} is {value!r}: {ARGUMENTS[key].lower()}." for key, value in call.parsed().items()]
    if len(turn.steps[step]) > 1:
        lines.append("These calls do not depend on each other, so I make them together.")
    return "\n".join(lines)


def thought_before_reply(world: World, turn: SampleTurn) -> str:
    """What the last calls answered, why the turn ends here, and what the reply has to say."""
    told = [f"Now I have: {_answers(world, turn, len(turn.steps) - 1)}."] if turn.steps else []
    told = told or [f'The user says: "{turn.user_message}"']
    tool = turn.forbidden_tools[0] if turn.forbidden_tools else ""
    if turn.kind == "none" and tool:
        told.append(f"For {tool} a value is missing that only the user knows, so I ask for it.")
    else:
        told.append(_WHY_END.get(turn.kind, "That is all that was asked for.").format(tool=tool))
    return "\n".join([*told, f"The reply must say: {', '.join(turn.facts)}."])


def further_thoughts(turn: SampleTurn, rng: random.Random) -> Iterator[str]:
    """Sentences that go through the tools that the turn is not about, then through all arguments: true, if wordy."""
    names = list(CATALOGUE)
    rng.shuffle(names)
    for name in names:
        if name in turn.offered_tools:
            continue
        yield rng.choice(_PASSED_OVER).format(tool=name, what=DETAILS[name].split(". ")[0].rstrip("."))
    for name in names:
        for argument, kind in CATALOGUE[name].parameters.items():
            words = {"argument": argument, "kind": "text" if kind == TEXT else "a number"}
            yield rng.choice(_ARGUMENT).format(tool=name, meaning=ARGUMENTS[argument].lower(), **words)


def _answers(world: World, turn: SampleTurn, step: int) -> str:
    return ", ".join(f"{call.tool_name} answered {compact_json(_answer(world, call))}" for call in turn.steps[step])


def _answer(world: World, call: ToolCall) -> dict[str, Any]:
    return world.execute(call.tool_name, call.parsed())
