"""One line of progress now and then from transformers' Trainer."""

from __future__ import annotations

import time
from typing import Any

from transformers import TrainerCallback


class ProgressLine(TrainerCallback):
    """Prints step, loss and time left whenever the Trainer logs a loss."""

    def __init__(self, what: str, steps: int) -> None:
        self._what, self._steps, self._start = what, steps, time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **kwargs: Any) -> None:
        """Called with {"loss": ...} on every logged step, and with a summary at the end."""
        if not logs or "loss" not in logs:
            return
        step, loss = state.global_step, float(logs["loss"])
        left = (time.monotonic() - self._start) / step * (self._steps - step)
        print(f"{self._what}: step {step}/{self._steps}, loss {loss:.3f}, about {left:.0f} s left", flush=True)
