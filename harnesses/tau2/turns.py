"""The clock of one task's process: what the harness may take between two turns, since a policy steers its tools.

The tool `calculate` evaluates an expression in one go, so a policy can keep it busy for ever. No code of this process
runs meanwhile, so the kernel's timer ends the process; the driver sees by which signal it died.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

SCORING = 10
"""Scoring runs all tools of a conversation again, twice: it may take so many times as long as one step."""


class Clock:
    """Runs while the harness is at work, stands while a participant speaks (endpoints have their own patience)."""

    def __init__(self, step_s: float) -> None:
        self._step_s = step_s
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Someone speaks."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, self._step_s)

    def scoring(self) -> None:
        """The conversation is over."""
        signal.setitimer(signal.ITIMER_REAL, SCORING * self._step_s)
