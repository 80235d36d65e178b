"""Progress is told on stderr: seldom where nobody watches, as a bar on a terminal."""

from __future__ import annotations

import io

import pytest

import envace.progress as module
from envace.progress import progress


def test_short_work_says_nothing_and_long_work_says_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress("short") as report:
        report(1, 2)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(module, "LINE_EVERY_S", 0.0)
    with progress("reading") as report:
        report(5_000_000, 20_000_000)
    with progress("checking", "rows") as report:
        report(7, 0)
    assert capsys.readouterr() == ("", "reading: 5.0 MB of 20.0 MB (25 %)\nchecking: 7 rows\n")


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress("reading") as report:
        for done in range(0, 101, 10):
            report(done, 100)
    assert "reading" in terminal.getvalue()


def test_an_error_inside_passes_through() -> None:
    with pytest.raises(ValueError, match="inside"), progress("reading") as report:
        report(1, 2)
        raise ValueError("inside")
