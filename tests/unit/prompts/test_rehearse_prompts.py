"""The rehearse role's texts: their placeholders, and the order that serves a prefix cache."""

from __future__ import annotations

import pytest

from envace.prompts import load_prompt

PLACEHOLDERS = {"rehearse": {"recorded", "position", "count"}, "rehearse_recorded": {"recorded"}}


@pytest.mark.parametrize("name", PLACEHOLDERS)
def test_the_placeholders_are_those_that_the_loop_fills(name: str) -> None:
    assert load_prompt(name).placeholders == PLACEHOLDERS[name]


def test_what_all_rehearsals_share_comes_first_and_what_differs_between_calls_last() -> None:
    prompt = load_prompt("rehearse")
    text = prompt.substitute(recorded="<recorded>", position="<position>", count="<count>")
    assert text.index("<recorded>") < text.index("<position>") < text.index("<count>")
    assert len(text) - text.index("<position>") < 60 < text.index("<recorded>")


@pytest.mark.parametrize("values", [{}, {"recorded": ""}, {"recorded": "", "position": "1", "count": "1", "more": ""}])
def test_a_value_that_is_missing_or_unknown_is_refused(values: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="rehearse"):
        load_prompt("rehearse").substitute(**values)


def test_recorded_text_is_never_taken_for_a_placeholder() -> None:
    assert "$position" in load_prompt("rehearse").substitute(recorded="$position", position="1", count="2")
