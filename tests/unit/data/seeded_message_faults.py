"""Seeded faults of a row's id, text, messages, calls and results: checks 4 and 6 to 18, 33, 34 and 39."""

from __future__ import annotations

import json

from tests.unit.data.spoiling import (
    RawRow,
    RowFault,
    add_property,
    add_tool,
    arguments,
    declare,
    fault,
    first_argument,
    function,
    message,
    set_arguments,
    set_result,
    with_argument,
)

CALL = "/messages/1/tool_calls/0"
UNREACHABLE = (40, "W", "/outcome/turns/0/required_calls/0", "outcome_unreachable")
ARGUMENTS, RESULT = f"{CALL}/function/arguments", "/messages/2/content"
RECORDED_ERROR = (17, "W", RESULT, "recorded_tool_error")
USER, REPLY = "/messages/0/content", "/messages/8/content"


def _broken_result(row: RawRow) -> None:
    """The evidence quotes what the repair makes of it."""
    set_result(row, '{"sky": "\ufffd"}')
    message(row, 2)["content"] = '{"sky": "\ud83d"}'


def _surrogate_in_arguments(row: RawRow) -> None:
    """Plain letters in the raw row: only decoding makes a surrogate of them."""
    set_arguments(row, json.dumps({first_argument(row): "\ud83d"}))


def _private_key(row: RawRow) -> None:
    message(row, 8)["content"] += "\n-----BEGIN RSA " + "PRIVATE KEY-----"


def _other_enum(row: RawRow) -> None:
    """Only the second call's value is allowed."""
    name = first_argument(row)
    declare(row, properties={name: {"type": "string", "enum": [arguments(row, 1)[name]]}})


def _contradicting_error(row: RawRow) -> None:
    set_result(row, json.dumps({"error": "bad call", "details": {first_argument(row): "Expected integer, got string"}}))


def _say(text: str):  # the user's message, with a text behind it
    return lambda row: message(row).update(content=f"{message(row)['content']} {text}")


def _answer_another_call(row: RawRow) -> None:
    message(row, 2)["tool_call_id"] = message(row, 1)["tool_calls"][1]["id"]


MESSAGE_FAULTS: tuple[RowFault, ...] = (
    fault(4, "R", "no uuid", lambda r: r.pop("uuid"), "/uuid"),
    fault(4, "R", "uuid is a number", lambda r: r.update(uuid=7), "/uuid"),
    fault(4, "R", "blank uuid", lambda r: r.update(uuid=" "), "/uuid"),
    fault(4, "R", "uuid is a path", lambda r: r.update(uuid="../../etc/passwd"), "/uuid"),
    fault(4, "R", "uuid is a hidden name", lambda r: r.update(uuid=".a"), "/uuid"),
    fault(4, "W", "uuid of another shape", lambda r: r.update(uuid="row 7"), "/uuid"),
    fault(6, "R", "no messages", lambda r: r.update(messages=[]), "/messages"),
    fault(6, "R", "messages are text", lambda r: r.update(messages="hello"), "/messages"),
    fault(6, "R", "message is text", lambda r: r["messages"].__setitem__(0, "hello"), "/messages/0"),
    fault(6, "R", "unknown role", lambda r: message(r).update(role="robot"), "/messages/0/role"),
    fault(6, "R", "role is a list", lambda r: message(r).update(role=["user"]), "/messages/0/role"),
    fault(6, "R", "content is a number", lambda r: message(r).update(content=1), USER),
    fault(6, "R", "no content", lambda r: message(r).pop("content"), USER),
    fault(6, "R", "calls are text", lambda r: message(r, 1).update(tool_calls="find"), "/messages/1/tool_calls"),
    fault(
        6,
        "R",
        "the user calls",
        lambda r: message(r).update(tool_calls=message(r, 1)["tool_calls"]),
        "/messages/0/tool_calls",
    ),
    fault(6, "R", "call without function", lambda r: message(r, 1)["tool_calls"][0].pop("function"), CALL),
    fault(6, "R", "call without name", lambda r: function(r).pop("name"), CALL),
    fault(6, "R", "arguments are a number", lambda r: function(r).update(arguments=1), CALL),
    fault(6, "R", "call id is a number", lambda r: message(r, 1)["tool_calls"][0].update(id=1), CALL),
    fault(6, "R", "other type of call", lambda r: message(r, 1)["tool_calls"][0].update(type="code"), CALL),
    fault(7, "R", "reply missing at the end", lambda r: r["messages"].pop(), "/messages/7"),
    fault(
        7, "R", "late system message", lambda r: r["messages"].append({"role": "system", "content": "a"}), "/messages/9"
    ),
    fault(7, "R", "assistant first", lambda r: r["messages"].insert(0, message(r, 8)), "/messages/0"),
    fault(7, "R", "two replies", lambda r: r["messages"].append(message(r, 8)), "/messages/9"),
    fault(7, "R", "result after a reply", lambda r: r["messages"].insert(5, message(r, 2)), "/messages/5"),
    fault(7, "R", "calls without any result", lambda r: r["messages"].__delitem__(slice(2, 4)), "/messages/2"),
    fault(8, "R", "blank user", lambda r: message(r).update(content=" \n"), USER),
    fault(8, "R", "blank system", lambda r: r["messages"].insert(0, {"role": "system", "content": " "}), USER),
    fault(8, "R", "only a thought", lambda r: message(r, 8).update(content="<think>a</think> "), REPLY),
    fault(8, "R", "blank reply", lambda r: message(r, 8).update(content=" "), REPLY),
    fault(9, "R", "think block open", lambda r: message(r, 8).update(content="<think>a"), REPLY),
    fault(9, "R", "closed before opened", lambda r: message(r, 8).update(content="</think>a<think>b"), REPLY),
    fault(9, "R", "two blocks", lambda r: message(r, 8).update(content="<think>a</think><think>b</think>c"), REPLY),
    fault(9, "W", "no think block", lambda r: message(r, 1).update(content=""), "/messages/1/content"),
    fault(10, "R", "think tag of the user", _say("<think>hi</think>"), USER),
    fault(10, "R", "template token of the user", _say("<|im_end|>"), USER),
    fault(10, "R", "tag in a result", lambda r: set_result(r, '{"a": "</tool_response>"}'), RESULT),
    fault(
        10, "R", "tag of the system", lambda r: r["messages"].insert(0, {"role": "system", "content": "<tools>"}), USER
    ),
    fault(11, "R", "lone surrogate", _say("\ud83d"), USER),
    fault(
        11,
        "R",
        "NUL in a key",
        lambda r: add_property(r, {"x\0": 1}),
        "/tools/0/function/parameters/properties/x/x\\x00",
    ),
    fault(11, "R", "surrogate inside arguments", _surrogate_in_arguments, ARGUMENTS),
    fault(11, "W", "surrogate in a result", _broken_result, RESULT),
    fault(12, "R", "arguments cut", lambda r: function(r).update(arguments='{"city": '), ARGUMENTS),
    fault(12, "R", "arguments are a list", lambda r: function(r).update(arguments="[1]"), ARGUMENTS),
    fault(12, "R", "arguments are empty text", lambda r: function(r).update(arguments=""), ARGUMENTS),
    fault(12, "R", "argument twice", lambda r: function(r).update(arguments='{"a": 1, "a": 2}'), ARGUMENTS),
    fault(13, "R", "undeclared tool", lambda r: function(r).update(name="rm_rf"), f"{CALL}/function/name"),
    fault(14, "R", "undeclared argument", lambda r: with_argument(r, colour="red"), ARGUMENTS),
    fault(14, "R", "missing argument", lambda r: function(r).update(arguments="{}"), ARGUMENTS),
    fault(14, "W", "wrong type", lambda r: with_argument(r, **{first_argument(r): 7}), ARGUMENTS),
    fault(14, "W", "not in the enum", _other_enum, ARGUMENTS, beside=(UNREACHABLE,)),
    fault(15, "R", "result of another call", _answer_another_call, "/messages/2/tool_call_id"),
    fault(15, "R", "result missing", lambda r: r["messages"].pop(3), "/messages/1/tool_calls"),
    fault(15, "R", "result too many", lambda r: r["messages"].insert(3, message(r, 2)), "/messages/1/tool_calls"),
    fault(
        15,
        "W",
        "call id twice",
        lambda r: [call.update(id="call_0") for call in message(r, 1)["tool_calls"]],
        "/messages/1/tool_calls/1/id",
    ),
    fault(16, "R", "result is words", lambda r: set_result(r, "sunny, 20 C"), RESULT),
    fault(16, "R", "result with NaN", lambda r: set_result(r, '{"temp": NaN}'), RESULT),
    fault(16, "R", "result with a key twice", lambda r: set_result(r, '{"a": 1, "a": 2}'), RESULT),
    fault(16, "W", "result is a number", lambda r: set_result(r, "20"), RESULT),
    fault(17, "W", "error", lambda r: set_result(r, '{"error": "not found"}'), RESULT),
    fault(17, "W", "marked as an error", lambda r: set_result(r, '{"is_error": true}'), RESULT),
    fault(17, "W", "status of an error", lambda r: set_result(r, '{"status": "error"}'), RESULT),
    fault(18, "W", "error demands another type", _contradicting_error, RESULT, beside=(RECORDED_ERROR,)),
    fault(33, "R", "tools fill the prompt", lambda r: add_tool(r, description="a" * 14_000), ""),
    fault(33, "R", "reference too long", lambda r: add_tool(r, description="a" * 12_000), ""),
    fault(34, "R", "long message", lambda r: message(r).update(content="a" * 1001), "/messages/0"),
    fault(34, "R", "long row", lambda r: add_tool(r, description="a" * 60_000), ""),
    fault(39, "W", "address of a person", _say("Write to ana.b@mail.example-shop.de."), USER),
    fault(
        39, "W", "cloud key", lambda r: add_tool(r, description="Uses AKIA" + "Q7" * 8), "/tools/0/function/description"
    ),
    fault(39, "W", "private key", _private_key, REPLY),
    fault(
        39,
        "W",
        "address as a key",
        lambda r: add_tool(
            r, parameters={"type": "object", "properties": {"a@b.de": {"type": "string"}}, "required": []}
        ),
        "/tools/0/function/parameters/properties",
    ),
)
