"""What is shown while a training runs: short lines where nobody watches, a bar on a terminal, the same figures."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest

from envace.training.progress import TrainingProgress, step_figures, validation_line
from envace.training.recorder import Recorder

FIGURES = {
    "reward/mean": 0.6123,
    "act/reward_mean": 0.61,
    "rehearse/reward_mean": 0.58,
    "reward/success": 0.25,
    "rehearse/malformed_share": 0.03,
    "act/outputs": 100,
    "act/tokens_mean": 12.0,
    "stop/completed": 0.95,
    "stop/invalid_rehearsal": 0.03,
    "stop/max_outputs": 0.02,
}
VALIDATED = {"validation/reward/mean": 0.5, "validation/reward/success": 0.1}
TIMINGS = {"step": 6.0, "gen": 2.0, "update_actor": 3.0}


def shown(folder: Path, *, done: int = 0, total: int = 4, every: int = 2) -> None:
    """Progress of a run whose steps are all recorded when it begins to look."""
    recorder = Recorder(folder / "records")
    for step in range(total + 1):
        testing = {"testing": 5.0} if step % every == 0 else {}
        if step % every == 0:
            recorder.write("validation", step, VALIDATED, [], {})
        if step:
            recorder.write("train", step, FIGURES, [], TIMINGS | testing)
    with TrainingProgress(recorder, total, done, every):
        pass


def test_a_line_a_step_tells_reward_by_role_endings_speed_and_time_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    steps = [line for line in lines if line.startswith("step")]
    assert steps[0] == (
        "step 1/4: reward 0.612 (act 0.610, rehearse 0.580), success 0.250, malformed rehearsals 0.030, "
        "completed 95%, invalid rehearsal 3%, 600 tokens/s, 6.0 s, about 18 s left"
    )
    assert all(len(line) < 180 for line in lines)
    # two steps of 6 s and one validation of 5 s are still to come
    assert steps[1].endswith("about 17 s left") and steps[3].endswith("about 0 s left")
    assert [line for line in lines if "validation" in line] == [
        f"  validation at step {step}: true reward 0.500, success 0.100" for step in (0, 2, 4)
    ]


def test_a_resumed_run_shows_only_what_is_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown(tmp_path, done=2)
    said = capsys.readouterr().out
    assert "step 2/4" not in said and "step 3/4" in said and re.findall(r"validation at step (\d)", said) == ["4"]


def test_a_terminal_shows_a_bar_and_the_validations_above_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    error, out = Terminal(), Terminal()
    monkeypatch.setattr("sys.stderr", error)
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setenv("COLUMNS", "250")
    shown(tmp_path)
    assert "step 4/4" in error.getvalue() and "rehearse 0.580" in error.getvalue()
    assert "validation at step 4" in out.getvalue() and "step 4/4" not in out.getvalue()


@pytest.mark.parametrize(
    "missing", ["reward/mean", "rehearse/reward_mean", "stop/completed", "rehearse/malformed_share"]
)
def test_a_figure_that_is_not_there_is_no_zero(missing: str) -> None:
    metrics: dict[str, Any] = {name: value for name, value in FIGURES.items() if name != missing}
    told = step_figures(metrics, {"tokens_per_s": 1.0, "whole": 1.0})
    assert "n/a" in told or missing == "stop/completed"
    assert "n/a" in validation_line(3, {})
