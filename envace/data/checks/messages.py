"""Checks 6, 7 and 15: are the messages well-formed, in a possible order, and do calls and results match."""

from __future__ import annotations

from typing import Any

from envace.data.checks.row import Row
from envace.data.checks.violation import Findings, pointer
from envace.data.schema_names import ROLES


def check_shape(row: Row) -> None:
    """6: messages exist and every one has the parts that the others checks read."""
    messages = row.record.get("messages")
    if not isinstance(messages, list) or not messages:
        row.findings.add(6, "R", "/messages", f"expected a non-empty list, found {_kind(messages)}")
        return
    for index, message in enumerate(messages):
        _check_message(message, index, row.findings)


def _check_message(message: Any, index: int, findings: Findings) -> None:
    if not isinstance(message, dict):
        findings.add(6, "R", pointer("messages", index), f"a message must be an object, found {_kind(message)}")
        return
    role = message.get("role")
    if role not in ROLES:
        findings.add(6, "R", pointer("messages", index, "role"), f"unknown role {role!r}; known are {', '.join(ROLES)}")
    if not isinstance(message.get("content"), str):
        place = pointer("messages", index, "content")
        findings.add(6, "R", place, f"content must be text, found {_kind(message.get('content'))}")
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        findings.add(6, "R", pointer("messages", index, "tool_calls"), f"expected a list or null, found {_kind(calls)}")
        return
    for number, call in enumerate(calls):
        fault = _call_fault(call)
        if fault:
            findings.add(6, "R", pointer("messages", index, "tool_calls", number), fault)
    if calls and role != "assistant":
        findings.add(6, "R", pointer("messages", index, "tool_calls"), f"a {role} message cannot call tools")


def _call_fault(call: Any) -> str | None:
    if not isinstance(call, dict) or not isinstance(call.get("function"), dict):
        return "a call must be an object with a `function` object"
    if not isinstance(call["function"].get("name"), str) or not isinstance(call["function"].get("arguments"), str):
        return "a call's function needs `name` and `arguments` as text"
    if not isinstance(call.get("id", ""), str):
        return f"a call's id must be text, found {_kind(call['id'])}"
    return None if call.get("type", "function") == "function" else f"unknown type of call {call['type']!r}"


def check_order(row: Row) -> None:
    """7: each message may stand where it stands."""
    before = "start"
    for index, message in enumerate(row.messages):
        role = message["role"]
        now = "calls" if role == "assistant" and message["tool_calls"] else role
        if now not in _FOLLOWERS[before]:
            expected = " or ".join(_FOLLOWERS[before])
            row.findings.add(7, "R", pointer("messages", index), f"{now} cannot follow {before}; expected {expected}")
            return
        before = now
    if before != "assistant":
        last = pointer("messages", len(row.messages) - 1)
        row.findings.add(7, "R", last, f"the last message must be a reply of the assistant, found {before}")


_FOLLOWERS: dict[str, tuple[str, ...]] = {
    "start": ("system", "user"),
    "system": ("user",),
    "user": ("assistant", "calls"),
    "assistant": ("user",),
    "calls": ("tool",),
    "tool": ("tool", "assistant", "calls"),
}
"""What may come next; `calls` is an assistant message with calls, `assistant` one without."""


def check_pairing(row: Row) -> None:
    """15: as many results as calls, straight after them; call ids unique in the row."""
    seen: set[str] = set()
    for index, message in enumerate(row.messages):
        calls = message["tool_calls"]
        if not calls:
            continue
        results = 0
        while index + 1 + results < len(row.messages) and row.messages[index + 1 + results]["role"] == "tool":
            results += 1
        if results != len(calls):
            detail = f"{len(calls)} calls are followed by {results} results"
            row.findings.add(15, "R", pointer("messages", index, "tool_calls"), detail)
        for number, call in enumerate(calls):
            call_id = call.get("id") or ""
            answer = index + 1 + number
            answered = row.messages[answer].get("tool_call_id") if number < results else None
            if call_id and answered and answered != call_id:
                detail = f"the result says that it answers {answered!r}, the call at its place is {call_id!r}"
                row.findings.add(15, "R", pointer("messages", answer, "tool_call_id"), detail)
            if call_id and call_id in seen:
                place = pointer("messages", index, "tool_calls", number, "id")
                row.findings.add(15, "W", place, f"the call id {call_id!r} is used twice")
            seen.add(call_id)


def _kind(value: Any) -> str:
    return {"NoneType": "nothing", "dict": "an object", "list": "a list", "str": "text"}.get(
        type(value).__name__, type(value).__name__
    )
