"""What an act output says: every public report of a broken tool-call parser, as a case with its right behaviour."""

from __future__ import annotations

import json

import pytest

from envace.chat.layout import render_calls
from envace.chat.parser import ActOutput, parse_act, parse_response
from envace.errors import ToolCallError
from envace.types import ToolCall

GOOD = '<tool_call>{"name": "get_weather", "arguments": {"city": "Łódź", "days": 2}}</tool_call>'
TWO = (
    '<tool_call>{"name": "a", "arguments": {}}</tool_call>\n<tool_call>{"name": "b", "arguments": {"x": 1}}</tool_call>'
)


def block(inner: str) -> str:
    return f"<tool_call>{inner}</tool_call>"


def names(output: ActOutput) -> list[str]:
    return [call.tool_name for call in output.calls]


def refused(text: str) -> str:
    """The message of the one typed error that `text` must give, with nothing to run beside it."""
    output = parse_act(text)
    assert isinstance(output.error, ToolCallError) and output.calls == [], text
    return str(output.error)


def test_two_objects_in_one_block_are_one_typed_error_that_names_the_block() -> None:
    message = refused(block('{"name":"a","arguments":{}}\n{"name":"b","arguments":{}}'))
    assert "block 1" in message and "</tool_call>" in message


@pytest.mark.parametrize("tag", ["</tool_call>", "<tool_call>", "<think>", "</think>", "<|im_end|>"])
def test_a_literal_tag_inside_a_string_argument_is_text(tag: str) -> None:
    call = ToolCall(tool_name="note", arguments=json.dumps({"text": f"see {tag} here"}))
    output = parse_act(render_calls([call]))
    assert output.error is None and output.reasoning == "" and output.reply == ""
    assert [c.parsed() for c in output.calls] == [{"text": f"see {tag} here"}]


def test_several_calls_of_one_message_come_in_order_with_ids_of_their_own() -> None:
    output = parse_act(TWO)
    assert names(output) == ["a", "b"] and len({c.call_id for c in output.calls}) == 2


@pytest.mark.parametrize("before", ["", "I look. ", "<think>\nI need get_weather.\n</think>\n"])
def test_an_output_cut_at_any_byte_never_runs_unless_its_call_is_whole(before: str) -> None:
    written = (before + GOOD + " done").encode()
    whole = len((before + GOOD).encode())
    for cut in range(len(written) + 1):
        output = parse_act(written[:cut].decode("utf-8", "replace"))
        assert names(output) == (["get_weather"] if cut >= whole else []), written[:cut]
        assert not (output.error and output.calls)


def test_two_calls_cut_at_any_byte_run_only_as_far_as_they_are_whole() -> None:
    first = TWO.index("</tool_call>") + len("</tool_call>")
    for cut in range(len(TWO) + 1):
        output = parse_act(TWO[:cut])
        assert names(output) in ([], ["a"], ["a", "b"])
        if cut < first:
            assert names(output) == []
        if names(output) == ["a", "b"]:
            assert cut == len(TWO)
        if output.error:
            assert output.calls == []


@pytest.mark.parametrize(
    "inner",
    [
        '{"name": "a", "arguments": {"x": 1,}}',
        '{name: "a", "arguments": {}}',
        "{'name': 'a', 'arguments': {}}",
        '{"name": "a", "arguments": {"x": tru}}',
        '{"name": "a", "arguments": {"x": "y}}',
        '{"name": "a", "arguments": {}',
        '{"name": "a" "arguments": {}}',
        "",
        "   ",
        "get_weather(city)",
    ],
)
def test_bad_json_is_a_typed_error_and_never_an_empty_call(inner: str) -> None:
    refused(block(inner))


@pytest.mark.parametrize(
    "arguments",
    ['""', '"{}"', "null", "[]", "[1]", "1", "true", "NaN", '{"x": NaN}', '{"x": -Infinity}', '{"x": 1e999}'],
)
def test_arguments_must_be_an_object_of_finite_numbers(arguments: str) -> None:
    refused(block(f'{{"name": "a", "arguments": {arguments}}}'))


@pytest.mark.parametrize(
    "inner",
    [
        '{"name": "", "arguments": {}}',
        '{"name": 1, "arguments": {}}',
        '{"name": null, "arguments": {}}',
        '{"arguments": {}}',
        '{"name": "a"}',
        '{"name": "a", "arguments": {}, "id": 1}',
        '{"name": "a", "name": "b", "arguments": {}}',
        '{"name": "a", "arguments": {"x": 1, "x": 2}}',
        '[{"name": "a", "arguments": {}}]',
        '"a"',
        '{"name": "a", "arguments": {"x": "\\ud83d"}}',
        '{"name": "\\udc00", "arguments": {}}',
        '{"name": "a", "arguments": {"\\ud83d": 1}}',
    ],
)
def test_what_is_not_exactly_a_call_is_a_typed_error(inner: str) -> None:
    refused(block(inner))


@pytest.mark.parametrize(
    "text",
    [
        GOOD + "</tool_call>",
        "</tool_call>",
        "</tool_call>" + GOOD,
        GOOD + "<tool_call>",
        "<tool_call>" + GOOD,
        GOOD + block("oops"),
        block("oops") + GOOD,
        "<think>never closed " + GOOD,
        GOOD + "<think>never closed",
    ],
)
def test_one_broken_block_keeps_all_calls_of_the_output_from_running(text: str) -> None:
    refused(text)


def test_json_outside_a_block_is_reply_text() -> None:
    fenced = '```json\n{"name": "a", "arguments": {}}\n```'
    output = parse_act(fenced)
    assert output.calls == [] and output.error is None and output.reply == fenced


@pytest.mark.parametrize(
    "text",
    [
        f"<think>I could {GOOD}</think>It is 5.",
        f"  \n<think>\n{GOOD}\n</think>\n\nIt is 5.",
        f"I could {GOOD} or not.</think>It is 5.",
        f"{GOOD}</think>It is 5.",
        "<tool_call>broken</think>It is 5.",
        f"<think>{block('broken')}</think>It is 5.",
    ],
)
def test_a_call_inside_reasoning_is_not_a_call(text: str) -> None:
    output = parse_act(text)
    assert (output.calls, output.error, output.reply) == ([], None, "It is 5.")
    assert "tool_call" in output.reasoning


def test_reasoning_after_the_beginning_is_still_reasoning() -> None:
    output = parse_act(f"Let me see. <think>maybe {GOOD}</think>It is 5. {GOOD}")
    assert names(output) == ["get_weather"]
    assert output.reply == "Let me see.\nIt is 5." and output.reasoning == f"maybe {GOOD}"


def test_a_call_after_reasoning_is_a_call() -> None:
    output = parse_act(f"<think>\nplan\n</think>\n\nOne moment. {GOOD}")
    assert output.reasoning == "plan" and output.reply == "One moment." and names(output) == ["get_weather"]


@pytest.mark.parametrize("text", ["", " ", "\n", "<think></think>"])
def test_an_empty_output_is_an_empty_reply(text: str) -> None:
    output = parse_act(text)
    assert (output.reasoning, output.reply, output.calls, output.error) == ("", "", [], None)


@pytest.mark.parametrize("depth", [60, 150, 400, 900, 980, 990, 1000, 5000, 100_000])
@pytest.mark.parametrize("opened, closed", [('{"a":', "}"), ("[", "]")])
def test_deep_nesting_is_a_call_or_a_typed_error_but_never_raises(depth: int, opened: str, closed: str) -> None:
    inner = opened * depth + "1" + closed * depth
    output = parse_act(block(f'{{"name": "a", "arguments": {{"x": {inner}}}}}'))
    if output.error is None:
        assert json.loads(output.calls[0].canonical)  # what comes through can also be scored and stored
    parse_response(inner)
    parse_act(block(inner[: len(inner) // 2]))


@pytest.mark.parametrize("digits", [100, 4000, 5000])
def test_huge_numbers_never_raise(digits: int) -> None:
    parse_act(block(f'{{"name": "a", "arguments": {{"x": {"9" * digits}}}}}'))
    parse_response(f'{{"x": {"9" * digits}}}')


@pytest.mark.parametrize("text", ['{"a": 1}', " [1, 2]\n", "{}", "[]"])
def test_a_response_is_a_json_object_or_array(text: str) -> None:
    assert parse_response(text) == json.loads(text)


@pytest.mark.parametrize(
    "text", ["", "1", '"a"', "null", "true", '{"a": 1', '{"a": NaN}', "{} {}", "{'a': 1}", "sunny"]
)
def test_anything_else_is_no_response(text: str) -> None:
    assert parse_response(text) is None
