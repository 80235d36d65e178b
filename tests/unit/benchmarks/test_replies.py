"""Replies that are failures of the policy, although the harness would take them for an abstention."""

from __future__ import annotations

import pytest

from harnesses.bfcl.replies import Call, Reply, failure_of, too_long, wants_data


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        (Reply(None), "empty"),
        (Reply(" \n"), "empty"),
        (Reply(None, reasoning="I think"), "empty"),
        (Reply("I was going to", finish_reason="length"), "cut"),
        (Reply('<tool_call>{"name": "a"'), "no call of the API"),
        (Reply('{"name": "a", "arguments": {}}'), "no call of the API"),
        (Reply('```json\n{"name": "a"}\n```'), "no call of the API"),
        (Reply("[TOOL_CALLS] [{}]"), "no call of the API"),
        (Reply("\ufffd\ufffd\ufffd abc"), "garbage"),
        (Reply("\x00\x01 abc"), "garbage"),
        (Reply("a\ud83d b"), "garbage"),
        (Reply("#$%& 0101 ;;;; 99 }}"), "garbage"),
        (Reply(None, [Call("1", "a", '{"x": }')]), "malformed"),
        (Reply(None, [Call("1", "a", "")]), "malformed"),
        (Reply(None, [Call("1", "a", "[]")]), "malformed"),
        (Reply("text as well", [Call("1", "a", "{}"), Call("2", "b", "nope")]), "malformed"),
    ],
)
def test_failures(reply: Reply, word: str) -> None:
    found = failure_of(reply)
    assert found is not None and word in found


@pytest.mark.parametrize(
    "reply",
    [
        Reply("I cannot help with this."),
        Reply("None of the tools fits; you might ask for [x]."),
        Reply("没有合适的工具。"),
        Reply(None, [Call("1", "a", "{}")]),
        Reply(None, [Call("1", "a", '{"x": [1, {"y": null}]}')], finish_reason="length"),
    ],
)
def test_proper_replies(reply: Reply) -> None:
    assert failure_of(reply) is None


ANSWER = "{'answer': '42', 'context': 'I looked it up.'}"


@pytest.mark.parametrize("text", [ANSWER, f"```json\n{ANSWER}\n```", "42", "3.14 %", "-1", "[1, 2]"])
def test_an_answer_in_the_demanded_form_is_none(text: str) -> None:
    assert wants_data("memory_kv_0-customer-0") and wants_data("web_search_base_0")
    assert failure_of(Reply(text), free_form=True) is None
    assert not wants_data("multi_turn_base_0") and failure_of(Reply(text)) is not None


@pytest.mark.parametrize(
    "text",
    ["", "<tool_call>{", '{"name": "core_memory_add", "arguments": {}}', "\ufffd\ufffd", "#$%& ;;;; }}", "\x00 42"],
)
def test_where_data_is_demanded_garbage_and_calls_as_text_are_failures_still(text: str) -> None:
    assert failure_of(Reply(text), free_form=True) is not None


def test_bounds_on_length() -> None:
    assert too_long(Reply(None, [Call("1", "a", "x" * 100)]), 64)
    assert too_long(Reply(None, [Call("1", "a" * 100, "{}")]), 64)
    assert too_long(Reply("x" * 2000), 64)
    assert too_long(Reply(None, [Call("1", "a", "{}")] * 1000), 64)
    assert too_long(Reply("x" * 1000, [Call("1", "a", "{}")]), 64) is None


def test_a_reply_survives_the_way_to_the_sandbox() -> None:
    reply = Reply("a", [Call("1", "b", "{}")], "tool_calls", 3, 4, "why")
    assert Reply.from_json(reply.as_json()) == reply
