"""Reasoning is cut by ids: what is left is what was sampled, and nothing of the reasoning is left."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from envace.chat.cutting import cut_spans
from envace.chat.layout import ChatLayout
from envace.chat.parser import parse_act

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).filter(
    lambda text: "<" not in text and text == text.strip("\n")
)


def is_subsequence(part: list[int], whole: list[int]) -> bool:
    rest = iter(whole)
    return all(i in rest for i in part)


@given(words, words, words, words)
def test_what_is_left_is_the_text_without_its_think_blocks(
    qwen_layout: ChatLayout, before: str, thought: str, reply: str, after: str
) -> None:
    text = f"{before}<think>{thought}</think>\n\n{reply}<think>\n{thought}\n</think>{after}"
    ids = qwen_layout.encode_output(text)
    kept = qwen_layout.cut(ids, parse_act(text).thoughts)
    assert qwen_layout.text(kept) == before + reply + after
    assert is_subsequence(kept, ids)


def test_tags_that_are_no_tokens_of_their_own_go_with_the_whole_token() -> None:
    pieces = ["Hm", "m<thi", "nk>sec", "ret</th", "ink>Y", "es"]
    text = "".join(pieces)
    spans = [(text.index("<think>"), text.index("Yes"))]

    def decode(ids: list[int]) -> str:
        return "".join(pieces[i] for i in ids)

    assert cut_spans(list(range(6)), spans, decode) == [0, 5]


def test_characters_of_several_tokens_beside_a_block_stay_whole(qwen_tokenizer: Any, qwen_layout: ChatLayout) -> None:
    text = "窓😀<think>東京 🤔</think>\n\n窓😀"
    ids = qwen_layout.encode_output(text)
    assert len(ids) > len(text) - 10  # more tokens than characters where it matters
    assert qwen_layout.text(qwen_layout.cut(ids, parse_act(text).thoughts)) == "窓😀窓😀"


def test_an_output_without_reasoning_is_left_as_it_is(qwen_layout: ChatLayout) -> None:
    ids = qwen_layout.encode_output("Yes.")
    assert qwen_layout.cut(ids, []) == ids[:-1]
