"""The learning curve's two held-out levels: there, labelled, at their height; left out where they were not measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from envace.report import pictures
from envace.report.curves import Curves, Point
from envace.report.headline import Row

CURVES = Curves(
    reward=[Point(1, 0.5, 0.01, 64), Point(2, 0.6, 0.01, 64)],
    validation_reward=[Point(0, 0.55, 0.02, 35), Point(2, 0.7, 0.02, 35)],
    validation_success=[Point(0, 0.1, 0.02, 35), Point(2, 0.3, 0.02, 35)],
    reward_by_role={"act": [Point(1, 0.5, 0.0, 64)], "rehearse": [Point(1, 0.4, 0.0, 64)]},
    stop_reasons={},
    outputs={},
    unscorable=0,
)
ROWS = [Row("base", 0.65, 0.02, 0.1, 0.02), Row("clean", 0.88, 0.02, 0.7, 0.02), Row("control", 0.66, 0.02, 0.1, 0.02)]


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Draws the curve; gives the dashed horizontal lines of its right panel by their labels in the legend."""

    def draw(rows: list[Row]) -> dict[str, float]:
        kept: list[Any] = []
        monkeypatch.setattr(pictures, "png", lambda drawn: kept.append(drawn) or b"")
        pictures.learning_curve(CURVES, rows)
        training, validation = kept[0].axes
        told = [text.get_text() for text in validation.get_legend().get_texts()]
        lines = {line.get_label(): line for line in validation.lines if line.get_linestyle() == "--"}
        assert not [line for line in training.lines if "held-out" in str(line.get_label())]
        assert all(str(label) in told for label in lines)
        return {str(label): float(line.get_ydata()[0]) for label, line in lines.items()}

    return draw


def test_ceiling_and_control_are_lines_at_their_held_out_reward(levels: Any) -> None:
    found = levels(ROWS)
    assert found == {"ceiling: clean references (held-out)": 0.88, "control: more supervised steps (held-out)": 0.66}


def test_what_was_not_evaluated_has_no_line(levels: Any) -> None:
    assert levels([]) == {}
    assert list(levels(ROWS[:2])) == ["ceiling: clean references (held-out)"]
    assert levels([replace(ROWS[1], reward=None)]) == {}


def test_the_same_figures_give_the_same_bytes() -> None:
    assert pictures.learning_curve(CURVES, ROWS) == pictures.learning_curve(CURVES, ROWS)
    assert pictures.learning_curve(CURVES, ROWS) != pictures.learning_curve(CURVES)
