"""Live progress of a training run: a thread in the driver that reads the step records as they appear.

On a terminal a bar, and a line for each validation; elsewhere a line for each step.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from statistics import fmean
from typing import Any, Protocol

from envace.training.recorder import Recorder
from envace.training.timings import step_split

_POLL_S = 0.5
_STOP = "stop/"


class _Shown(Protocol):
    """Where progress goes."""

    def step(self, step: int, figures: str) -> None: ...

    def line(self, text: str) -> None: ...

    def close(self) -> None: ...


class TrainingProgress:
    """Shows each recorded step: reward by role, success, how rollouts ended, tokens a second, seconds and time left.

    `done` steps are known already; a validation comes every `validate_every` steps and at the end.
    """

    def __init__(self, recorder: Recorder, total: int, done: int, validate_every: int) -> None:
        self._recorder, self._total, self._every = recorder, total, validate_every
        self._seen = {"train": done, "validation": done or -1}
        self._steps: list[float] = []
        self._validations: list[float] = []
        # the streams are kept, since verl's own talk is sent elsewhere while this shows
        self._shown: _Shown = _Bar(total, done) if sys.stderr.isatty() else _Lines(total)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="training-progress")

    def __enter__(self) -> TrainingProgress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._shown.close()

    def _watch(self) -> None:
        while not self._end.wait(_POLL_S):
            self._show_new()
        self._show_new()

    def _show_new(self) -> None:
        for phase in ("validation", "train"):
            for step in (s for s in self._recorder.steps(phase) if s > self._seen[phase]):
                self._seen[phase] = step
                metrics = self._recorder.metrics(phase, step)
                if phase == "validation":
                    self._shown.line(validation_line(step, metrics))
                else:
                    self._show_step(step, metrics)

    def _show_step(self, step: int, metrics: dict[str, Any]) -> None:
        split = step_split(self._recorder.timings("train", step), metrics)
        self._steps.append(split["whole"])
        self._validations += [split["validation"]] if split["validation"] else []
        self._shown.step(step, f"{step_figures(metrics, split)}, about {self._left(step):.0f} s left")

    def _left(self, step: int) -> float:
        """Seconds that the steps to come and their validations will take, if they take as long as those seen."""
        validations = self._total // self._every - step // self._every
        validations += step < self._total and self._total % self._every != 0
        seconds = fmean(self._steps) * (self._total - step)
        return seconds + (fmean(self._validations) * validations if self._validations else 0.0)


def step_figures(metrics: Mapping[str, Any], split: Mapping[str, float]) -> str:
    """The figures of a training step in a few words."""
    by_role = ", ".join(f"{role} {_show(metrics, f'{role}/reward_mean')}" for role in ("act", "rehearse"))
    return (
        f"reward {_show(metrics, 'reward/mean')} ({by_role}), success {_show(metrics, 'reward/success')}, "
        f"malformed rehearsals {_show(metrics, 'rehearse/malformed_share')}, {_endings(metrics)}, "
        f"{split['tokens_per_s']:.0f} tokens/s, {split['whole']:.1f} s"
    )


def validation_line(step: int, metrics: Mapping[str, Any]) -> str:
    """The figures of a validation in a few words."""
    reward, success = _show(metrics, "validation/reward/mean"), _show(metrics, "validation/reward/success")
    return f"  validation at step {step}: true reward {reward}, success {success}"


def _endings(metrics: Mapping[str, Any]) -> str:
    """Share of completed rollouts, and the most frequent other stop reason if there is one."""
    shares = {name.removeprefix(_STOP): share for name, share in metrics.items() if name.startswith(_STOP)}
    completed = shares.pop("completed", 0.0)
    other = max(shares, key=lambda name: shares[name], default="")
    more = f", {other.replace('_', ' ')} {shares[other]:.0%}" if other and shares[other] > 0 else ""
    return f"completed {completed:.0%}{more}"


def _show(metrics: Mapping[str, Any], name: str) -> str:
    value = metrics.get(name)
    return "n/a" if value is None else f"{value:.3f}"


class _Lines:
    """One line a step on standard output."""

    def __init__(self, total: int) -> None:
        self._total, self._out = total, sys.stdout

    def step(self, step: int, figures: str) -> None:
        self.line(f"step {step}/{self._total}: {figures}")

    def line(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def close(self) -> None:
        """Nothing is open."""


class _Bar:
    """A bar on the terminal, its figures behind it."""

    def __init__(self, total: int, done: int) -> None:
        from tqdm import tqdm

        self._out = sys.stdout
        form = "step {n_fmt}/{total_fmt} |{bar:12}|{postfix}"
        self._bar = tqdm(total=total, initial=done, bar_format=form, file=sys.stderr, dynamic_ncols=True)

    def step(self, step: int, figures: str) -> None:
        self._bar.set_postfix_str(figures, refresh=False)
        self._bar.update(step - self._bar.n)
        self._bar.refresh()

    def line(self, text: str) -> None:
        self._bar.write(text, file=self._out)

    def close(self) -> None:
        self._bar.close()
