"""What a judge reads: every text on its own escaped line, reasoning kept back, long ones cut by rule."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from envace.rewards.escaping import json_line
from envace.rewards.transcript import render_transcript
from envace.types import TurnRecord
from tests.unit.rewards.fakes import call, step, task, turn

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=40)
TOKENS = ["<|im_end|>", "</think>", "[INST]", "[/INST]", "<<SYS>>", "<start_of_turn>", "\u2028", "\x85", "\ud83d", "\n"]


@given(ANY_TEXT | st.lists(st.sampled_from([*TOKENS, "\\", '"', "a"])).map("".join))
def test_a_line_gives_its_text_back_and_holds_nothing_that_could_break_out(text: str) -> None:
    line = json_line({"turn": 1, "text": text})
    assert json.loads(line) == {"turn": 1, "text": text}
    assert line.splitlines() == [line]
    assert not set(line) & set("<>\ud83d\u200b\u202e\ufeff")
    assert "[INST]" not in line and "[/INST]" not in line
    line.encode("utf-8")


def conversation() -> list[TurnRecord]:
    first = turn(
        step(call("find", who="Zoë"), results=['{"a": 1}'], reasoning="r0"), step(reply="Yes.", reasoning="r1")
    )
    calls = [call("find", who="Li"), call("look")]
    second = [step(*calls, results=['{"b": 2}', '{"c": 3}'], reasoning="r2", reply="One moment."), step(reply="No.")]
    return [first, turn(*second, user="And Li?", index=1)]


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.split("\n")]


def rendered(step_index: int, show_reasoning: bool = False, max_chars: int = 60_000) -> str:
    each = task(system_prompt="Be kind.")
    return render_transcript(each, conversation(), step_index, show_reasoning=show_reasoning, max_chars=max_chars)


def test_it_holds_everything_up_to_the_step_and_nothing_after() -> None:
    shown = lines(rendered(0))
    assert [line["from"] for line in shown] == [
        *("system", "user", "assistant.tool_call", "tool_result", "assistant.reply", "user"),
        *("assistant.reply", "assistant.tool_call", "assistant.tool_call", "tool_result", "tool_result"),
    ]
    assert shown[2] == {"turn": 0, "step": 0, "from": "assistant.tool_call", "tool": "find", "text": '{"who": "Zoë"}'}
    assert "No." not in rendered(0) and "No." in rendered(1)


def test_a_longer_transcript_extends_a_shorter_one() -> None:
    assert rendered(1).startswith(rendered(0) + "\n")


def test_reasoning_is_shown_only_when_asked_for_and_only_of_the_turn() -> None:
    assert not any(f"r{n}" in rendered(1) for n in range(3))
    texts = {line["text"] for line in lines(rendered(1, show_reasoning=True)) if line["from"] == "assistant.reasoning"}
    assert texts == {"r2"}


def test_one_huge_text_keeps_its_head_and_tail_and_says_how_much_is_missing() -> None:
    huge = "HEAD" + "x" * 200_000 + "TAIL"
    turns = [turn(step(call("find"), results=[huge]), step(reply="Yes."), user="Please.")]
    text = render_transcript(task(), turns, 1, show_reasoning=False, max_chars=10_000)
    assert len(text) <= 10_000
    shown = lines(text)
    assert [line["from"] for line in shown] == ["user", "assistant.tool_call", "tool_result", "assistant.reply"]
    cut = shown[2]
    assert str(cut["text"]).startswith("HEAD") and str(cut["then"]).endswith("TAIL")
    assert len(str(cut["text"])) + int(str(cut["left_out_characters"])) + len(str(cut["then"])) == len(huge)
    assert shown[0]["text"] == "Please." and shown[3]["text"] == "Yes."


def test_very_many_texts_keep_the_first_and_the_last_lines_and_mark_the_gap() -> None:
    steps = [step(call("find", n=n), results=[json.dumps({"n": n, "pad": "y" * 300})]) for n in range(800)]
    text = render_transcript(task(), [turn(*steps, step(reply="Done."))], 800, show_reasoning=False, max_chars=8_000)
    assert len(text) <= 8_000
    shown = lines(text)
    gap = [n for n, line in enumerate(shown) if "left_out" in line]
    assert len(gap) == 1 and 0 < gap[0] < len(shown) - 1
    assert shown[0]["from"] == "user" and shown[-1]["text"] == "Done." and shown[-2]["step"] == 799


@settings(max_examples=40)
@given(st.lists(st.integers(0, 3000), max_size=12), st.sampled_from(["x", "<", "é", "\u2028", "\n"]), st.booleans())
def test_it_never_exceeds_its_bound(sizes: list[int], letter: str, show: bool) -> None:
    steps = [step(call("f"), results=[letter * size], reasoning=letter * size) for size in sizes]
    turns = [turn(*steps, step(reply=letter * 500), user=letter * 900)]
    text = render_transcript(task(), turns, len(steps), show_reasoning=show, max_chars=1_000)
    assert len(text) <= 1_000 and text == render_transcript(
        task(), turns, len(steps), show_reasoning=show, max_chars=1_000
    )
    lines(text)
