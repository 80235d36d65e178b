"""What a run prints while it goes: a line as each stage starts and ends, and between them its log, indented."""

from __future__ import annotations

from flows.dvc import STAGES, StageOutcome

_INDENT = " " * 6
_SAID = {"ran": "done in", "cached": "outputs taken from the cache in", "unchanged": "unchanged, checked in"}


def started(name: str) -> None:
    """Announce a stage."""
    say(f"{_place(name)} {name}")


def line(text: str) -> None:
    """One line of a stage's own output."""
    say(_INDENT + text)


def ended(outcome: StageOutcome) -> None:
    """Say what became of a stage."""
    say(f"{_INDENT}{_SAID[outcome.outcome]} {outcome.seconds:.1f} s")


def failed(seconds: float) -> None:
    """Say that a stage failed; why follows at the end of the run."""
    say(f"{_INDENT}failed after {seconds:.1f} s")


def say(text: str) -> None:
    """Print at once, also into a pipe."""
    print(text, flush=True)


def _place(name: str) -> str:
    return f"[{STAGES.index(name) + 1}/{len(STAGES)}]"
