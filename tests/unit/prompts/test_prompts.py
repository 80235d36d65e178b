"""The prompts of the judge and of test-time rehearsal: their placeholders, their order, and the loader's refusals."""

from __future__ import annotations

import pytest

from envace.prompts import Prompt, load_prompt

PLACEHOLDERS = {
    "judge": {"transcript", "criterion", "key"},
    "self_evaluation": {"task", "attempt"},
    "memory": {"task", "attempts", "max_tokens"},
}


@pytest.mark.parametrize("name", PLACEHOLDERS)
def test_a_prompt_has_just_the_placeholders_that_are_filled(name: str) -> None:
    prompt = load_prompt(name)
    assert prompt.placeholders == PLACEHOLDERS[name]
    filled = prompt.substitute(**{key: f"<{key} $x ${{y}}>" for key in prompt.placeholders})
    assert all(f"<{key} $x ${{y}}>" in filled for key in prompt.placeholders)
    assert not filled.endswith("\n")


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("judge", ["$transcript", "$criterion", "$key"]),
        ("self_evaluation", ["$task", "$attempt"]),
        ("memory", ["$task", "$attempts", "$max_tokens"]),
    ],
)
def test_what_questions_share_comes_first(name: str, order: list[str]) -> None:
    prompt = load_prompt(name)
    text = prompt.substitute(**{key: f"${key}" for key in prompt.placeholders})
    assert sorted(order, key=text.index) == order


def test_the_judges_prompt_holds_no_answer_to_repeat() -> None:
    text = load_prompt("judge").substitute(transcript="", criterion="", key="satisfied")
    assert "{" not in text and text.splitlines().count("BEGIN RECORD") == text.splitlines().count("END RECORD") == 1


def test_the_memory_says_its_bound() -> None:
    filled = load_prompt("memory").substitute(task="t", attempts="a", max_tokens="512")
    assert "At most 512 tokens" in filled


def test_missing_and_unknown_values_and_stray_dollar_signs_are_refused() -> None:
    with pytest.raises(ValueError, match="criterion, other, transcript"):
        load_prompt("judge").substitute(key="k", other="x")
    with pytest.raises(ValueError, match="dollar"):
        Prompt("p", "costs 5$")
    with pytest.raises(FileNotFoundError):
        load_prompt("nothing")
