"""What a training run leaves on disk step by step: metrics and rollouts, each file all-or-nothing.

A killed run loses at most the step it was in; a resumed one overwrites the steps it repeats. Beside the records stands
metrics.jsonl, all steps so far as JSON lines, written anew with each step. Durations are kept apart,
since nothing that a later stage reads may differ from run to run; what judges took is moved there from the rollouts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envace.files import read_json, write_json, write_text
from envace.rollout.records import JUDGE_WORK, write_rollouts
from envace.training.timings import JUDGED

LINES = "metrics.jsonl"


class Recorder:
    """Writes and collects the records below one folder; the JSON lines stand beside that folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(
        self, phase: str, step: int, metrics: dict[str, float], rollouts: Sequence[str], timings: dict[str, float]
    ) -> None:
        """Record one step of a phase ("train" or "validation"). `rollouts` are JSON texts of `rollout_row`."""
        name = f"{phase}-{step:06d}"
        kept, work = _without_judge_work(rollouts)
        write_text(self._folder / f"{name}.rollouts.jsonl", "".join(f"{r}\n" for r in sorted(kept)))
        write_json(self._folder / f"{name}.timings.json", {**timings, **work})
        # last: its presence means that the step is recorded whole
        write_json(self._folder / f"{name}.metrics.json", {"step": step, "phase": phase, **metrics})
        self._write_lines(self._folder.parent / LINES)

    def steps(self, phase: str) -> list[int]:
        """Recorded steps of a phase, in order."""
        return sorted(int(p.name.split("-")[1].split(".")[0]) for p in self._folder.glob(f"{phase}-*.metrics.json"))

    def metrics(self, phase: str, step: int) -> dict[str, Any]:
        """The figures of one recorded step."""
        return read_json(self._folder / f"{phase}-{step:06d}.metrics.json")

    def timings(self, phase: str, step: int) -> dict[str, float]:
        """The durations of one recorded step, in seconds."""
        return read_json(self._folder / f"{phase}-{step:06d}.timings.json")

    def discard_after(self, step: int) -> None:
        """Forget what a run recorded beyond the checkpoint it resumes from."""
        for phase in ("train", "validation"):
            for later in (s for s in self.steps(phase) if s > step):
                for part in self._folder.glob(f"{phase}-{later:06d}.*"):
                    part.unlink()
        if self._folder.is_dir():
            self._write_lines(self._folder.parent / LINES)

    def collect(self, metrics_file: Path, rollouts_file: Path) -> list[dict[str, Any]]:
        """Write all recorded steps as one JSON-lines file and one Parquet table; returns the metrics lines."""
        rows = []
        for step, phase in self._keys():
            text = (self._folder / f"{phase}-{step:06d}.rollouts.jsonl").read_text(encoding="utf-8")
            rows.extend(json.loads(line) for line in text.splitlines())
        write_rollouts(rollouts_file, rows, labels=("step", "phase"))
        return self._write_lines(metrics_file)

    def _keys(self) -> list[tuple[int, str]]:
        return sorted((step, phase) for phase in ("train", "validation") for step in self.steps(phase))

    def _write_lines(self, target: Path) -> list[dict[str, Any]]:
        lines = [self.metrics(phase, step) for step, phase in self._keys()]
        write_text(target, "".join(json.dumps(line) + "\n" for line in lines))
        return lines


def _without_judge_work(rollouts: Sequence[str]) -> tuple[list[str], dict[str, float]]:
    """The records without what their judges took, and the sums of that by name."""
    rows = [json.loads(text) for text in rollouts]
    works = [work for row in rows if (work := row.pop(JUDGE_WORK, None))]
    sums = {f"{JUDGED}{name}": float(sum(work[name] for work in works)) for name in (works[0] if works else ())}
    return [json.dumps(row) for row in rows], sums
