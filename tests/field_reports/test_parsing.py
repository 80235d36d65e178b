"""Reports about parsing tool calls: what was lost, cut short, invented or run by mistake. Each whole kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envace.chat.layout import render_calls
from envace.chat.parser import parse_act
from envace.errors import ToolCallError
from envace.files import compact_json
from envace.types import Rollout, StopReason, Task, ToolCall

TAGS = ["<tool_call>", "</tool_call>", "<think>", "</think>", "<|im_end|>", "```"]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
spiked = st.lists(texts | st.sampled_from([*TAGS, '"', "\\", "{", "}", "\n"]), max_size=6).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | spiked,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(spiked, inner, max_size=3),
    max_leaves=6,
)
calls = st.builds(
    lambda name, arguments: ToolCall(tool_name=name, arguments=compact_json(arguments)),
    st.sampled_from(["a", "get_weather", "search-a", "search_a"]),
    st.dictionaries(texts.filter(bool), values, max_size=3),
)
openings = st.sampled_from(["", "One moment. ", "<think>\nI need both.\n</think>\n\n"])


def block(inner: str) -> str:
    return f"<tool_call>{inner}</tool_call>"


def refused(text: str) -> str:
    """The message of the one typed error, with nothing left to run."""
    output = parse_act(text)
    assert isinstance(output.error, ToolCallError) and output.calls == [], text
    return str(output.error)


def same(made: list[ToolCall], wanted: list[ToolCall]) -> bool:
    return [(c.tool_name, c.parsed()) for c in made] == [(c.tool_name, c.parsed()) for c in wanted]


def test_vllm_17790_two_objects_in_one_tag_are_an_error_that_names_the_tag() -> None:
    message = refused('<tool_call>{"name":"a","arguments":{}}\n{"name":"b","arguments":{}}</tool_call>')
    assert "tool-call block 1" in message and "</tool_call>" in message


@given(st.lists(calls, min_size=2, max_size=4), st.sampled_from(["", " ", "\n", ", ", ";\n"]), openings)
def test_vllm_17790_no_way_of_putting_objects_into_one_tag_loses_a_call_silently(
    written: list[ToolCall], between: str, before: str
) -> None:
    objects = [compact_json({"name": c.tool_name, "arguments": c.parsed()}) for c in written]
    refused(before + block(between.join(objects)))
    refused(before + block(f"[{', '.join(objects)}]"))
    refused(before + render_calls(written[:1]) + block(between.join(objects)))


def test_vllm_45167_a_closing_tag_inside_an_argument_is_text() -> None:
    (call,) = parse_act(block('{"name": "note", "arguments": {"text": "see </tool_call> here"}}')).calls
    assert call.parsed() == {"text": "see </tool_call> here"}


@given(calls, openings)
def test_vllm_45167_whatever_a_string_holds_the_call_survives_whole(call: ToolCall, before: str) -> None:
    output = parse_act(before + render_calls([call]))
    assert output.error is None and same(output.calls, [call])


def test_vllm_32638_two_calls_in_one_message_both_come_in_order() -> None:
    output = parse_act(block('{"name":"a","arguments":{"x":1}}') + "\n" + block('{"name":"b","arguments":{}}'))
    assert [(c.tool_name, c.parsed()) for c in output.calls] == [("a", {"x": 1}), ("b", {})]


@given(st.lists(calls, min_size=2, max_size=6), st.sampled_from(["", "\n", " and ", "\n\nthen\n"]), openings)
def test_vllm_32638_any_number_of_calls_come_in_order_each_with_its_own_id(
    written: list[ToolCall], between: str, before: str
) -> None:
    output = parse_act(before + between.join(render_calls([c]) for c in written))
    assert output.error is None and same(output.calls, written)
    assert len({c.call_id for c in output.calls}) == len(written)


@given(calls, openings)
def test_hermes_7680_an_output_cut_at_any_byte_is_never_run(call: ToolCall, before: str) -> None:
    written = (before + render_calls([call])).encode()
    for cut in range(len(written)):
        for policy in ("replace", "ignore"):
            output = parse_act(written[:cut].decode("utf-8", policy))
            assert output.calls == [], written[:cut]


def test_hermes_7680_the_loop_does_not_even_parse_what_length_has_cut(
    play: Callable[..., Rollout], make_task: Callable[..., Task], write: Callable[..., str], layout: Any
) -> None:
    whole = write()
    for limit in range(1, len(layout.encode_output(whole))):
        rollout = play(make_task(), [whole, '{"sky": "sunny"}', "sunny"], max_act_tokens=limit)
        assert rollout.stop_reason is StopReason.OUTPUT_TRUNCATED and rollout.turns[0].calls == []


@pytest.mark.parametrize(
    "arguments",
    [
        '{"x": 1,}',
        "{x: 1}",
        "{'x': 1}",
        '{"x": 1',
        '{"x" 1}',
        '{"x": True}',
        '{"x": undefined}',
        '{"x": 1 /* one */}',
        '{"x": "a\nb"}',
        '{"x": 01}',
        '{"x": +1}',
        '{"x": .5}',
        '{"x": NaN}',
        '{"x": "\\q"}',
        '{"x": 1, "x": 2}',
    ],
)
def test_hermes_1796_bad_json_is_an_error_and_never_an_empty_call(arguments: str) -> None:
    refused(block(f'{{"name": "a", "arguments": {arguments}}}'))


def test_hermes_1796_the_loop_answers_bad_json_by_code_and_runs_nothing(
    play: Callable[..., Rollout], make_task: Callable[..., Task], write: Callable[..., str]
) -> None:
    broken = block('{"name": "get_weather", "arguments": {"city": "Łódź",}}')
    rollout = play(make_task(), [broken, write(), '{"sky": "sunny"}', "It is sunny."])
    refusal, answer = rollout.turns[0].observations
    assert (refusal.call, refusal.source) == (None, "code") and "error" in json.loads(refusal.content)
    assert answer.source == "rehearsed" and len(rollout.turns[0].calls) == 1 and rollout.reward == 1.0


@pytest.mark.parametrize("arguments", ['""', '" "', '"{}"', '"{\\"x\\": 1}"', "null", "[]", "0", "false"])
def test_vllm_19419_arguments_that_are_no_object_are_an_error_whatever_they_are(arguments: str) -> None:
    assert '"arguments" must be an object' in refused(block(f'{{"name": "a", "arguments": {arguments}}}'))


@pytest.mark.parametrize("inner", ['{"name": "a"}', '{"name": "a", "parameters": {}}', '{"arguments": {}}'])
def test_vllm_19419_missing_arguments_are_an_error_too(inner: str) -> None:
    refused(block(inner))


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```", "~~~tool\n{}\n~~~", "`{}`", "{}"])
def test_gorilla_662_json_in_a_code_fence_is_reply_text_by_rule(fence: str) -> None:
    written = fence.format('{"name": "a", "arguments": {}}')
    output = parse_act(written)
    assert (output.calls, output.error, output.reply) == ([], None, written)


def test_gorilla_662_a_call_stays_a_call_beside_or_inside_a_fence() -> None:
    call = ToolCall(tool_name="a", arguments="{}")
    for text in (f"```\n{render_calls([call])}\n```", f"```json\n{{}}\n```\n{render_calls([call])}"):
        assert same(parse_act(text).calls, [call])
    refused(block('```json\n{"name": "a", "arguments": {}}\n```'))
