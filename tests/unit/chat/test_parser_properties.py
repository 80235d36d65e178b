"""The parser on any text: it never raises, it gives calls or exactly one typed error, and it is fast."""

from __future__ import annotations

import random
import time
from statistics import median
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from envace.chat.layout import render_calls
from envace.chat.parser import ActOutput, parse_act, parse_response
from envace.errors import ToolCallError
from envace.files import compact_json
from envace.types import ToolCall

TAGS = ["<tool_call>", "</tool_call>", "<think>", "</think>"]
PIECES = [*TAGS, '{"name": "a", "arguments": {}}', '{"name":', '"arguments":', *'{}",] x', "\\", "\n"]
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
tagged = st.lists(st.one_of(text, st.sampled_from(PIECES)), max_size=12).map("".join)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | tagged
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(tagged, v, max_size=3), max_leaves=8)
calls = st.builds(
    lambda name, arguments: ToolCall(tool_name=name, arguments=compact_json(arguments)),
    tagged.filter(bool),
    st.dictionaries(tagged, values, max_size=4),
)


def check(output: ActOutput) -> None:
    ends = [i for span in output.thoughts for i in span]
    assert ends == sorted(ends)
    assert output.error is None or isinstance(output.error, ToolCallError)
    assert not (output.error and output.calls)
    for call in output.calls:
        assert isinstance(call.parsed(), dict) and call.canonical


@settings(deadline=None, max_examples=500)
@given(st.text() | tagged | st.binary().map(lambda b: b.decode("latin-1")))
def test_any_text_gives_calls_or_one_typed_error(written: str) -> None:
    check(parse_act(written))
    parse_response(written)


@settings(deadline=None, max_examples=300)
@given(st.lists(calls, min_size=1, max_size=3))
def test_rendered_calls_come_back_as_they_were_written(written: list[ToolCall]) -> None:
    output = parse_act(render_calls(written))
    assert output.error is None
    assert [(c.tool_name, c.arguments) for c in output.calls] == [(c.tool_name, c.arguments) for c in written]
    assert output.reply == "" and output.reasoning == ""


@settings(deadline=None, max_examples=200)
@given(calls, st.sampled_from(["", "First. ", "<think>\nplan\n</think>\n"]), st.floats(0, 1))
def test_a_call_that_is_cut_never_runs(call: ToolCall, before: str, share: float) -> None:
    written = before + render_calls([call])
    cut = written[: min(len(written) - 1, int(share * len(written)))]
    output = parse_act(cut)
    check(output)
    assert output.calls == []


def test_a_call_cut_at_any_byte_never_runs_even_where_the_output_has_ended() -> None:
    arguments = {"city": "Łódź", "note": 'a "quoted" </tool_call> \\ 窓', "list": [{}, [None]]}
    written = render_calls([ToolCall(tool_name="get_weather", arguments=compact_json(arguments))]).encode()
    for end in range(len(written)):
        output = parse_act(written[:end].decode("utf-8", "replace"))
        check(output)
        assert output.calls == []


def test_ten_thousand_broken_outputs_never_raise_and_take_a_millisecond_at_most() -> None:
    rng = random.Random(0)
    arguments: dict[str, Any] = {"city": "Łódź", "list": [1, {"a": None}], "text": 'a "quoted" </tool_call> \\ text'}
    valid = "<think>\nplan\n</think>\nOne moment. " + render_calls(
        [ToolCall(tool_name="get_weather", arguments=compact_json(arguments))] * 2
    )
    seconds = []
    for _ in range(10_000):
        written = list(valid)
        for _ in range(rng.randrange(1, 8)):
            at = rng.randrange(max(1, len(written) - 1))
            kind = rng.randrange(4)
            if kind == 0:
                written[at : at + 1] = chr(rng.randrange(0x250))
            elif kind == 1:
                del written[at : at + rng.randrange(1, 30)]
            elif kind == 2:
                written.insert(at, rng.choice(PIECES))
            else:
                written = written[: at + 1]
        start = time.perf_counter()
        output = parse_act("".join(written), opened=bool(rng.randrange(2)))
        seconds.append(time.perf_counter() - start)
        check(output)
    assert median(seconds) <= 1e-3
