"""The stages with the network blocked and a secret in the environment, run once.

P1: they pass, and only this machine's own names are looked up. S3: the secret that params.yaml names is in the
environment and nowhere else, however tactless the server that it is sent to.
"""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.security.conftest import SECRET, VARIABLE, Guarded, foreign

pytestmark = pytest.mark.slow  # nine processes, about a minute on two free cores

SPELLINGS = (SECRET, base64.b64encode(SECRET.encode()).decode().rstrip("="), quote(SECRET, safe=""), SECRET[::-1])


def holding(folder: Path) -> list[str]:
    """The files below a folder that hold the secret in any spelling."""
    spelt = [spelling.encode() for spelling in SPELLINGS]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path.relative_to(folder)) for path in files if any(s in path.read_bytes() for s in spelt)]


def test_every_stage_passes_but_the_one_whose_judge_refuses(guarded: Guarded) -> None:
    failed = {stage: guarded.outputs[stage] for stage, code in guarded.codes.items() if code}
    assert set(failed) == {"train_policy"}, failed


def test_only_this_machine_is_looked_up(guarded: Guarded) -> None:
    assert guarded.look_ups, "asking the judge is noted too"
    assert not foreign(guarded.look_ups)


def test_the_secret_was_used(guarded: Guarded) -> None:
    assert guarded.keys_received and set(guarded.keys_received) == {f"Bearer {SECRET}"}
    said = guarded.outputs["train_policy"]
    assert guarded.codes["train_policy"] == 2 and "reward.judge.endpoint" in said and "401" in said
    assert VARIABLE in (guarded.project / "dvc.lock").read_text(encoding="utf-8"), "named, not shown"


def test_it_is_in_no_output(guarded: Guarded) -> None:
    assert len(guarded.outputs) == 9
    assert not [stage for stage, said in guarded.outputs.items() if any(s in said for s in SPELLINGS)]


def test_it_is_in_no_command_line(guarded: Guarded) -> None:
    assert len(guarded.commands) >= 7
    assert not [command for command in guarded.commands if SECRET in command]


@pytest.mark.parametrize("place", ["data", "models", "reports", ".envace", ".dvc", "."])
def test_it_is_in_no_file(guarded: Guarded, place: str) -> None:
    assert any((guarded.project / place).iterdir())
    assert not holding(guarded.project / place)


def test_a_file_that_holds_it_would_be_found(tmp_path: Path) -> None:
    for number, spelling in enumerate(SPELLINGS):
        (tmp_path / str(number)).write_bytes(b"\x00" * 9 + spelling.encode() + b"\xff")
    assert len(holding(tmp_path)) == len(SPELLINGS)
