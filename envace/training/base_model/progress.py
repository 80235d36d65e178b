"""One line of progress now and then from transformers' Trainer."""

from __future__ import annotations

import time
from typing import Any

from transformers import TrainerCallback


class ProgressLine(TrainerCallback):
    """Prints step, loss and time left, about twenty times in all."""

    def __init__(self, what: str, steps: int) -> None:
        self._what, self._steps, self._every = what, steps, max(1, steps // 20)
        self._start = time.monotonic()
        self._loss = float("nan")

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **kwargs: Any) -> None:
        """Remember the newest loss."""
        self._loss = (logs or {}).get("loss", self._loss)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Print every twentieth part of the way."""
        step = state.global_step
        if step % self._every == 0 or step == self._steps:
            left = (time.monotonic() - self._start) / step * (self._steps - step)
            print(f"{self._what}: step {step}/{self._steps}, loss {self._loss:.3f}, {left:.0f} s left", flush=True)
