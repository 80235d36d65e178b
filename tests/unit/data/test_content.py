"""The reasoning split: nothing of the raw text is lost, and the usual layout needs no frame."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envace.data.content import CLOSE, OPEN, SplitContent, balanced, render_content, split_content

MARKS = st.sampled_from([OPEN, CLOSE, "\n", " ", "\n\n", "\t", "Zoë"])
PIECES = st.lists(st.one_of(MARKS, st.text(max_size=5)), max_size=8)
WORDS = st.text(alphabet="abc é\n", max_size=20).map(str.strip)


@given(PIECES)
def test_any_raw_text_comes_back_as_it_was(pieces: list[str]) -> None:
    content = "".join(pieces)
    assert render_content(split_content(content)) == content


@given(WORDS, WORDS)
def test_the_usual_layout_needs_no_frame(reasoning: str, reply: str) -> None:
    split = SplitContent(reasoning, reply)
    assert split_content(render_content(split)) == split


@pytest.mark.parametrize(
    ("content", "reasoning", "reply"),
    [
        ("<think>\nI look.\n</think>\n\nIt is late.", "I look.", "It is late."),
        ("<think>\nI look.\n</think>", "I look.", ""),
        ("<think>I look.</think>It is late.\n", "I look.", "It is late."),
        ("<think>\n\n</think>\n\nHello.", "", "Hello."),
        ("Well. <think>hm</think> Yes.", "hm", "Well.  Yes."),
        ("Hello.", "", "Hello."),
        ("", "", ""),
    ],
)
def test_reasoning_and_reply_are_told_apart(content: str, reasoning: str, reply: str) -> None:
    split = split_content(content)
    assert (split.reasoning, split.reply) == (reasoning, reply)
    assert render_content(split) == content


@pytest.mark.parametrize("content", ["<think>a", "a</think>", "</think>a<think>", "<think></think><think></think>"])
def test_unbalanced_blocks_are_known(content: str) -> None:
    assert not balanced(content)
