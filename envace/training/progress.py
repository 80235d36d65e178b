"""Live progress of a training run: a thread in the driver that reads the step records as they appear."""

from __future__ import annotations

import sys
import threading
from typing import Any

from envace.training.recorder import Recorder


class TrainingProgress:
    """Prints one line a recorded step, with reward, success, malformed rehearsals, seconds and time left."""

    def __init__(self, recorder: Recorder, total: int, done: int) -> None:
        self._recorder, self._total, self._seen = recorder, total, {"train": done, "validation": done or -1}
        self._seconds: list[float] = []
        self._out = sys.stdout  # kept, since verl's own talk is sent elsewhere while this prints
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="training-progress")

    def __enter__(self) -> TrainingProgress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(0.5):
            self._print_new()
        self._print_new()

    def _print_new(self) -> None:
        for phase in ("validation", "train"):
            for step in (s for s in self._recorder.steps(phase) if s > self._seen[phase]):
                self._seen[phase] = step
                print(self._line(phase, step, self._recorder.metrics(phase, step)), file=self._out, flush=True)

    def _line(self, phase: str, step: int, metrics: dict[str, Any]) -> str:
        if phase == "validation":
            reward, success = _show(metrics, "validation/reward/mean"), _show(metrics, "validation/reward/success")
            return f"  validation at step {step}: true reward {reward}, success {success}"
        seconds = self._recorder.timings(phase, step).get("step", 0.0)
        self._seconds.append(seconds)
        left = sum(self._seconds) / len(self._seconds) * (self._total - step)
        return (
            f"step {step}/{self._total}: reward {_show(metrics, 'reward/mean')}, "
            f"success {_show(metrics, 'reward/success')}, "
            f"malformed rehearsals {_show(metrics, 'rehearse/malformed_share')}, "
            f"{seconds:.1f} s, about {left:.0f} s left"
        )


def _show(metrics: dict[str, Any], name: str) -> str:
    value = metrics.get(name)
    return "n/a" if value is None else f"{value:.3f}"
