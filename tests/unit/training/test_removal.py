"""A finished run's folder goes as a whole: a kill while it is removed leaves nothing that a later run could take up."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.training.test_launch import Stopped, Verl, contents, start, verl

__all__ = ["start", "verl"]


@pytest.mark.parametrize("gone", ["nothing", "records", "checkpoints"])
def test_a_run_killed_while_its_folder_is_removed_ends_the_same_and_leaves_nothing(
    start: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    gone: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wanted = contents(start())
    state, plain = tmp_path / "state", shutil.rmtree

    def killed(folder: Path, *args: Any, **kwargs: Any) -> None:
        if folder.parent != state.resolve():
            return plain(folder, *args, **kwargs)
        assert (folder / "records").is_dir() and (folder / "checkpoints").is_dir()
        if gone != "nothing":
            plain(folder / gone)
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(Stopped):
            start()
    assert len(list(state.iterdir())) == 1
    capsys.readouterr()
    assert contents(start()) == wanted
    assert list(state.iterdir()) == [] and "stopped under" not in capsys.readouterr().out


def test_what_a_killed_removal_has_left_is_removed_and_not_taken_for_another_run(
    start: Callable[..., Path], verl: Verl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = tmp_path / "state" / ".removed-0123456789abcdef"
    (left / "records").mkdir(parents=True)
    verl.stop = "step 1 begun"
    with pytest.raises(Stopped):
        start()
    assert not left.exists() and str(left) not in capsys.readouterr().out
