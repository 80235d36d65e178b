"""The checklist of a sample turn: items about calls, results and literal facts of the reply, which code can decide."""

from __future__ import annotations

import json
from typing import Any

Message = dict[str, Any]
CALL_SHARE, RESULT_SHARE = 0.5, 0.2
"""Shares of a turn's weight for its calls and for their results; what the reply says takes the rest."""


def turn_items(index: int, messages: list[Message], facts: tuple[str, ...], is_final: bool) -> list[dict[str, Any]]:
    """The items of turn `index`. `messages` are those of the turn, the user message first.

    In a non-final turn the items about calls are gating, or those about the reply where the turn has no call.
    """
    calls = [(step, call["function"]) for step, message in enumerate(messages) for call in message["tool_calls"]]
    results = [(step, message["content"]) for step, message in enumerate(messages) if message["role"] == "tool"]
    reply = messages[-1]["content"].split("</think>")[-1].strip()
    weights = iter(_weights(len(calls), len(facts)))
    result_ids = [f"C{len(calls) + position}" for position in range(len(results))]
    items: list[dict[str, Any]] = []

    def add(about: dict[str, Any], source: str, step: int, snippet: str, gates: bool, depends: list[str]) -> None:
        evidence = [{"turn": index, "step": step, "from": source, "snippet": snippet}]
        item = {"id": f"C{len(items)}", "evidence": evidence, "focus_on": source, **about}
        items.append({**item, "required_for_next_turn": gates, "dependence": depends, "weight": next(weights)})

    for step, function in calls:
        snippet = _call_snippet(function["name"], function["arguments"])
        add(_about_call(function), "assistant.tool_calls", step, snippet, not is_final, [])
    for (_, function), (step, content) in zip(calls, results, strict=True):
        add(_about_result(function["name"], content), "tool.content", step, content, False, [])
    for fact in facts:
        gates = not is_final and not calls
        add(_about_fact(fact), "assistant.content.user_visible_reply", len(messages) - 1, reply, gates, result_ids)
    return items


def _weights(calls: int, facts: int) -> list[float]:
    """Weights of four decimals that sum to 1: the last item takes what rounding left."""
    if calls:
        raw = [CALL_SHARE / calls] * calls + [RESULT_SHARE / calls] * calls
        raw += [(1 - CALL_SHARE - RESULT_SHARE) / facts] * facts
    else:
        raw = [1 / facts] * facts
    rounded = [round(weight, 4) for weight in raw]
    return [*rounded[:-1], round(1.0 - sum(rounded[:-1]), 4)]


def _call_snippet(name: str, arguments: str) -> str:
    """The call as it stands in the JSON text of the message, which is how CM2 quotes calls."""
    return f'"name": {json.dumps(name)}, "arguments": {json.dumps(arguments, ensure_ascii=False)}'


def _about_call(function: dict[str, str]) -> dict[str, Any]:
    name, arguments = function["name"], function["arguments"]
    return {
        "question": f"Did the assistant call {name} with the arguments {arguments}?",
        "pass_condition": f"There is a tool call with name={name} and arguments equal to {arguments}.",
        "failure_examples": [f"No call of {name}", "Another value in the arguments"],
    }


def _about_result(tool: str, content: str) -> dict[str, Any]:
    return {
        "question": f"Did {tool} answer {content}?",
        "pass_condition": f"A result of {tool} equals {content}.",
        "failure_examples": [f"No result of {tool}", "Another value in the result"],
    }


def _about_fact(fact: str) -> dict[str, Any]:
    return {
        "question": f'Does the final reply say "{fact}"?',
        "pass_condition": f'The final reply contains "{fact}" as whole words.',
        "failure_examples": [f'"{fact}" is not in the reply'],
    }
