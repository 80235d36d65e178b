"""A sample conversation as a record of CM2's raw schema, with the sample's two extra keys `outcome` and `world`."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from envace.data.sample.conversations import Conversation
from envace.data.sample.rubrics import turn_items
from envace.data.sample.turns import SampleTurn
from envace.data.sample.world import World
from envace.files import canonical_json, compact_json

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "envace/data/sample")


@dataclass(frozen=True)
class Wording:
    """How a record words what a conversation leaves open: its tools, its reasoning, its system message.

    `before_calls` gives the thought before a turn's step of the given number, `before_reply` the one before its reply.
    """

    tool: Callable[[str], dict[str, Any]]
    before_calls: Callable[[SampleTurn, int], str]
    before_reply: Callable[[SampleTurn], str]
    system: str | None = None


def to_raw_record(world: World, conversation: Conversation) -> dict[str, Any]:
    """The raw record of a conversation in few words. Results are what the world truly answers."""
    return with_uuid(raw_record(world, conversation, Wording(world.tool_schema, short_thought, short_last_thought)))


def raw_record(world: World, conversation: Conversation, wording: Wording) -> dict[str, Any]:
    """The raw record of a conversation, worded as given, without a uuid."""
    messages: list[dict[str, Any]] = []
    checklist = []
    for index, turn in enumerate(conversation.turns):
        part = _turn_messages(world, turn, sum(len(m["tool_calls"]) for m in messages), wording)
        checklist.append(turn_items(index, part, turn.facts, is_final=index == len(conversation.turns) - 1))
        messages += part
    return {
        "messages": messages if wording.system is None else [_message("system", wording.system), *messages],
        "tools": [wording.tool(name) for name in conversation.tools],
        "checklists": [checklist],
        "outcome": {"turns": [_outcome(turn) for turn in conversation.turns]},
        "world": {"domain": conversation.domain, "seed": world.seed},
    }


def with_uuid(record: dict[str, Any]) -> dict[str, Any]:
    """The record with a uuid that comes from its content, in front."""
    return {"uuid": str(uuid.uuid5(_NAMESPACE, canonical_json(record))), **record}


def _turn_messages(world: World, turn: SampleTurn, calls_before: int, wording: Wording) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [_message("user", turn.user_message)]
    number = calls_before
    for step, calls in enumerate(turn.steps):
        raw_calls = []
        for call in calls:
            function = {"name": call.tool_name, "arguments": call.arguments}
            raw_calls.append({"id": f"call_{number}", "type": "function", "function": function})
            number += 1
        messages.append(_message("assistant", _think(wording.before_calls(turn, step)), raw_calls))
        for call in calls:
            messages.append(_message("tool", compact_json(world.execute(call.tool_name, call.parsed()))))
    messages.append(_message("assistant", f"{_think(wording.before_reply(turn))}\n\n{turn.reply}"))
    return messages


def _message(role: str, content: str, tool_calls: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"role": role, "content": content, "tool_calls": tool_calls or []}


def _think(thought: str) -> str:
    return f"<think>\n{thought}\n</think>"


def short_thought(turn: SampleTurn, step: int) -> str:
    """What is needed, by name."""
    return f"I need {' and '.join(dict.fromkeys(call.tool_name for call in turn.steps[step]))}."


def short_last_thought(turn: SampleTurn) -> str:
    """Why the turn ends as it does, in one sentence."""
    by_kind = {
        "refuse": f"{turn.forbidden_tools[0]} is not allowed here." if turn.forbidden_tools else "",
        "chain_refuse": f"{turn.forbidden_tools[0]} is not possible now." if turn.forbidden_tools else "",
        "none": "A value is missing." if turn.forbidden_tools else "No tool is needed.",
        "error": "Nothing was found.",
    }
    return by_kind.get(turn.kind, "I have what I need.")


def _outcome(turn: SampleTurn) -> dict[str, Any]:
    required = [{"name": call.tool_name, "arguments": call.parsed()} for step in turn.steps for call in step]
    return {
        "required_calls": required,
        "ordered": True,
        "forbidden_tools": list(turn.forbidden_tools),
        "required_facts": list(turn.facts),
    }
