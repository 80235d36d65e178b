"""A harness that is not what was released is refused before a run, with how to get what was."""

from __future__ import annotations

from pathlib import Path

import pytest

from envace.errors import BenchmarkError
from harnesses.bfcl import pins


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of a few files, and the pins of just these."""
    for name in ("__init__.py", "eval_checker/checker.py", "data/tasks.json", "data/possible_answer/tasks.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    monkeypatch.setattr(pins, "PINS", {"1": pins.digests(tmp_path)})
    return tmp_path


def test_bytecode_and_what_is_not_used_change_nothing(package: Path) -> None:
    for name in ("__pycache__/__init__.cpython-311.pyc", "data/unused_datasets/old.json", "data/README.md"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("other everywhere", encoding="utf-8")
    assert set(pins.check("1", package)) == {"code", "data"}


@pytest.mark.parametrize(
    ("file", "part"),
    [("eval_checker/checker.py", "code"), ("more.py", "code"), ("data/possible_answer/tasks.json", "data")],
)
def test_an_edited_file_is_refused(package: Path, file: str, part: str) -> None:
    (package / file).write_text("edited", encoding="utf-8")
    with pytest.raises(
        BenchmarkError, match=f"has other {part} than BFCL v4 1; .* envace benchmark install bfcl --again"
    ):
        pins.check("1", package)


def test_a_version_without_pins_is_refused(package: Path) -> None:
    with pytest.raises(BenchmarkError, match="BFCL v4 2 is not known here; known are 1"):
        pins.check("2", package)
