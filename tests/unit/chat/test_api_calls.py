"""Act outputs that come as text and API calls: whatever stands there, calls or one typed error, and nothing raised."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from envace.chat.api_calls import calls_as_text, parse_chat
from envace.chat.parser import parse_act
from envace.errors import ToolCallError
from envace.types import Task, ToolCall

NOTHING = Task(
    task_id="t", content_sha256="", split="train", system_prompt=None, tools=[], turns=[], rubrics=[], outcome=None,
    world=None, flags=[], provenance="",
)  # fmt: skip
values = st.none() | st.booleans() | st.integers() | st.text(max_size=10) | st.just("{}") | st.just('{"a": 1}')
functions = values | st.dictionaries(st.sampled_from(["name", "arguments", "x"]), values, max_size=3)
calls = st.dictionaries(st.sampled_from(["function", "id", "type"]), functions, max_size=3)


@given(st.text(max_size=30), st.text(max_size=10), st.lists(calls, max_size=3))
def test_anything_gives_calls_or_one_typed_error(text: str, reasoning: str, made: list[dict[str, Any]]) -> None:
    parsed = parse_chat(text, reasoning, made, NOTHING)
    assert parsed.error is None or isinstance(parsed.error, ToolCallError)
    assert not (parsed.error and parsed.calls)
    assert all(isinstance(call.parsed(), dict) for call in parsed.calls)


def test_calls_of_the_api_are_the_calls_and_the_text_is_the_reply() -> None:
    api = {"id": "a", "function": {"name": "one", "arguments": '{"x": 1}'}}
    text = '<think>plan</think>See <tool_call>{"name": "two", "arguments": {}}</tool_call>'
    parsed = parse_chat(text, "before", [api], NOTHING)
    assert [c.tool_name for c in parsed.calls] == ["one"] and parsed.error is None
    assert parsed.reasoning == "before\nplan" and parsed.reply.startswith("See <tool_call>")


def test_one_bad_call_keeps_all_of_the_output_from_running() -> None:
    good, bad = ({"id": "a", "function": {"name": "one", "arguments": a}} for a in ("{}", "{"))
    parsed = parse_chat("", "", [good, bad], NOTHING)
    assert parsed.calls == [] and "tool call 2" in str(parsed.error)


def test_calls_written_as_text_are_read_back() -> None:
    made = [ToolCall(tool_name='a"b', arguments=json.dumps({"x": "</tool_call>"}))] * 2
    assert [c.canonical for c in parse_act(calls_as_text(made)).calls] == [c.canonical for c in made]
