"""A circuit breaker: after so many failures in a row nothing is asked for a while, then one call tries again."""

from __future__ import annotations

import time
from collections.abc import Callable


class CircuitBreaker:
    """Shared by all calls of one client. Closed: all pass. Open: none. After the pause one passes and decides."""

    def __init__(self, failures: int, pause_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._pause_s, self._clock = failures, pause_s, clock
        self._failures = 0
        self._opened: float | None = None
        self._probe: object | None = None

    def enter(self, call: object) -> bool:
        """Whether `call` may ask now."""
        if self._opened is None or self._probe is call:
            return True
        if self._probe is not None or self._clock() < self._opened + self._pause_s:
            return False
        self._probe = call
        return True

    def answered(self) -> None:
        """The server answered properly: all may ask."""
        self._failures, self._opened, self._probe = 0, None, None

    def failed(self, call: object) -> None:
        """A try of `call` failed. Failures of calls that began before the circuit opened do not prolong the pause."""
        self._failures += 1
        if call is self._probe or (self._opened is None and self._failures >= self._limit):
            self._opened, self._probe = self._clock(), None

    def leave(self, call: object) -> None:
        """`call` has ended, perhaps cancelled: if it was the one to try again, the next one may."""
        if call is self._probe:
            self._probe = None
