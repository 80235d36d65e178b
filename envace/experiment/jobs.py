"""One piece of an experiment's work in a folder of its own: kept where finished, resumed where begun, shared by key."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from envace.errors import EnvaceError
from envace.files import canonical_json, read_json, sha256_text, write_json

Kind = Literal["data", "base", "loss", "training", "evaluation"]
StageRunner = Callable[[str, Path], None]
"""Runs a stage of the pipeline, or a job of this package, as a process in a folder. Raises StageError."""
Say = Callable[[str], None]
DONE, BEGUN = "done.json", "begun.json"
_USUAL_S: dict[Kind, float] = {"data": 20, "base": 240, "loss": 15, "training": 330, "evaluation": 60}


@dataclass(frozen=True, slots=True)
class Job:
    """`work` fills `folder`. What comes out depends on `key` and on the hashes that `inputs` gives once it can run."""

    kind: Kind
    what: str
    folder: Path
    key: str
    work: Callable[[], None]
    inputs: Callable[[], Mapping[str, str]] = field(default=dict)

    def mark(self) -> dict[str, Any]:
        """What a finished or begun folder must say to be this job's."""
        return {"key": self.key, "inputs": dict(self.inputs())}

    def is_done(self) -> bool:
        """Whether the folder holds the finished job. Only where what it starts from is finished too."""
        return _says(self.folder / DONE, self.mark())

    def record(self) -> dict[str, Any]:
        """What was noted when it was finished."""
        return read_json(self.folder / DONE)


def key_of(*parts: Any) -> str:
    """A hash of JSON values."""
    return sha256_text(canonical_json(parts))


def run_jobs(jobs: list[Job], experiments: Path, say: Say, code: str) -> None:
    """Run jobs in order, one at a time, each of them once. `code` is noted beside what was made.

    Finished ones are kept; one that another plan has finished is copied; a begun one goes on where its stage can.
    """
    expected = _expected_seconds(experiments)
    for number, job in enumerate(jobs, start=1):
        place = f"[{number}/{len(jobs)}]"
        mark = job.mark()
        if _says(job.folder / DONE, mark):
            say(f"{place} {job.what}: kept, finished before")
            continue
        _make_room(job, mark, say)
        twin = _twin(job, mark, experiments)
        if twin is not None:
            say(f"{place} {job.what}: copied, {twin.parent.name}/{twin.name} is the same")
            _copy(twin, job.folder)
            continue
        left = sum(expected[j.kind] for j in jobs[number - 1 :])
        say(f"{place} {job.what} (about {_minutes(left)} left in all)")
        write_json(job.folder / BEGUN, mark)
        began = time.monotonic()
        job.work()
        seconds = round(time.monotonic() - began, 1)
        write_json(job.folder / DONE, {**mark, "kind": job.kind, "code": code, "seconds": seconds})
        expected = _expected_seconds(experiments)


def _says(file: Path, mark: Mapping[str, Any]) -> bool:
    try:
        found = read_json(file)
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and all(found.get(name) == value for name, value in mark.items())


def _make_room(job: Job, mark: Mapping[str, Any], say: Say) -> None:
    """What was made of other params is set aside (a training may have taken long) or removed (all else is cheap)."""
    if not job.folder.exists() or (_says(job.folder / BEGUN, mark) and not (job.folder / DONE).exists()):
        return
    if job.kind != "training":
        shutil.rmtree(job.folder)
        return
    try:
        other = str(read_json(job.folder / BEGUN)["key"])[:8]
    except (OSError, ValueError, KeyError, TypeError):
        other = "unknown"
    aside = job.folder.with_name(f"{job.folder.name}-was-{other}")
    shutil.rmtree(aside, ignore_errors=True)
    job.folder.rename(aside)
    say(f"  {job.folder.name} was made of other params, data or base: set aside as {aside.name}")


def _twin(job: Job, mark: Mapping[str, Any], experiments: Path) -> Path | None:
    """A finished folder of the same work, of another plan or set aside."""
    found = (p.parent for p in sorted(experiments.glob(f"*/*/{DONE}")) if _says(p, mark))
    return next((folder for folder in found if folder != job.folder), None)


def _copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    ignored = shutil.ignore_patterns(DONE)
    shutil.copytree(source, target, symlinks=True, ignore=ignored)
    write_json(target / DONE, read_json(source / DONE))  # last: it says that all is there


def _expected_seconds(experiments: Path) -> dict[Kind, float]:
    """What a job of each kind takes: the median of those finished here, else a guess."""
    seen: dict[str, list[float]] = {}
    for path in experiments.glob(f"*/*/{DONE}"):
        try:
            record = read_json(path)
            seen.setdefault(record["kind"], []).append(float(record["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return {
        kind: sorted(seen[kind])[len(seen[kind]) // 2] if kind in seen else usual for kind, usual in _USUAL_S.items()
    }


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def require(path: Path, what: str) -> Path:
    """`path`, which a job should have written. Raises EnvaceError where it is not there."""
    if not path.exists():
        raise EnvaceError(f"{path}: not there, though {what} has ended; remove its folder and run again")
    return path
