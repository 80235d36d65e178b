"""Kills a training with SIGKILL at many points, runs it again, and compares the end with an uninterrupted run's.

Ten steps of the real verl trainer without a GPU, fp32, one thread, a checkpoint every second step. A point is a phase
(start-up, generation, update, checkpoint write, export), a step and a share of that phase's time, all drawn from the
seed. The whole process group is killed, and the stage is run again at once, while what the first run started is still
ending. Everything that the stage leaves is compared byte by byte.

Run: python -m tests.e2e.kill_points [--points 20] [--seed 0] [--phases PHASE...] [--old-log-probs rollout|trainer]
[--folder FOLDER]
Exit code 0: all ends are identical.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envace.config import Params, load_params
from envace.files import read_json
from envace.training.checkpoints import SEAL
from tests.e2e.project import TIMEOUT_S, changed, finish, left_over, make_base, make_project, make_tasks, start

STEPS, CHECKPOINT_EVERY = 10, 2
PHASES = ("start-up", "generation", "update", "checkpoint", "export")
OLD_LOG_PROBS = ("rollout", "trainer")
_POLL_S = 0.005
_REPORTS = ("metrics.jsonl", "rollouts.parquet", "summary.json")


@dataclass(frozen=True, slots=True)
class Reference:
    """The uninterrupted run: its project and setting, and the seconds of its parts by (phase, step)."""

    project: Path
    old_log_probs: str
    seconds: Mapping[tuple[str, int], float]


@dataclass(frozen=True, slots=True)
class Point:
    """When to kill: so many seconds after a step's phase has begun."""

    phase: str
    step: int
    delay_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a point came to. `difference`: None where all is identical, else what differs."""

    point: Point
    found: str  # on disk when it was killed
    resumed: str
    difference: str | None


def project_of(folder: Path, params: Params, base: Path, old_log_probs: str) -> Path:
    """A project for ten steps; `old_log_probs` as of params, of which `rollout` is what is shipped."""
    raw = changed(
        params,
        steps=STEPS,
        tasks_per_step=2,
        checkpoint_every=CHECKPOINT_EVERY,
        validate_every=STEPS // 2,
        warmup_steps=3,  # the schedule of the learning rate has to be resumed as well
        old_log_probs=old_log_probs,
    )
    return make_project(folder, base, raw, make_tasks(validation=2))


def run_reference(folder: Path, params: Params, base: Path, old_log_probs: str) -> Reference:
    """Run through, and watch the disk for when each phase begins."""
    project = project_of(folder, params, base, old_log_probs)
    began, process = time.monotonic(), start(project)
    seen: dict[str, float] = {}
    while process.poll() is None:
        if time.monotonic() - began > TIMEOUT_S:
            break
        for name, there in (
            ("recorded", _recorded(project, 0, "validation")),
            ("sealed", (_checkpoint(project, STEPS) / SEAL).is_file()),
        ):
            if there:
                seen.setdefault(name, time.monotonic())
        time.sleep(_POLL_S)
    finish(process)
    seconds = {("start-up", 0): seen["recorded"] - began, ("export", STEPS): time.monotonic() - seen["sealed"]}
    for split in read_json(project / "reports/timings/timings.json")["steps"]:
        for phase in ("generation", "update", "checkpoint"):
            seconds[phase, split["step"]] = split[phase]
    return Reference(project, old_log_probs, seconds)


def draw(reference: Reference, count: int, seed: int, phases: Sequence[str] = PHASES) -> list[Point]:
    """Points over the phases in turn; the steps and the moments are random."""
    rng, points = random.Random(seed), []
    for i in range(count):
        phase = phases[i % len(phases)]
        steps = {"start-up": [0], "export": [STEPS]}.get(phase, list(range(1, STEPS + 1)))
        step = rng.choice([s for s in steps if phase != "checkpoint" or s % CHECKPOINT_EVERY == 0])
        before = reference.seconds["generation", step] if phase == "update" else 0.0
        points.append(Point(phase, step, before + rng.uniform(0.02, 0.95) * reference.seconds[phase, step]))
    return points


def try_point(point: Point, reference: Reference, project: Path) -> Outcome:
    """Kill a new run there, run again, compare."""
    process = start(project)
    deadline = time.monotonic() + TIMEOUT_S
    while not _has_begun(project, point):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0]
        time.sleep(_POLL_S)
    time.sleep(point.delay_s)
    ended = process.poll() is not None
    if not ended:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    found = "ended before" if ended else _on_disk(project)
    said = finish(start(project))
    resumed = next((line.split(" of ")[0] for line in said.splitlines() if line.startswith("resuming")), "anew")
    differences = [*differing(reference.project, project), *(f"left behind: {p}" for p in left_over(project))]
    return Outcome(point, found, resumed, "; ".join(differences) or None)


def _has_begun(project: Path, point: Point) -> bool:
    match point.phase:
        case "start-up":
            return True
        case "generation" | "update":
            before = point.step - 1
            sealed = before % CHECKPOINT_EVERY != 0 or before == 0 or (_checkpoint(project, before) / SEAL).is_file()
            return sealed and _recorded(project, before, "train" if before else "validation")
        case "checkpoint":
            return _checkpoint(project, point.step).is_dir()
        case _:
            return (_checkpoint(project, STEPS) / SEAL).is_file()


def _recorded(project: Path, step: int, phase: str) -> bool:
    return any(project.glob(f".envace/checkpoints/*/records/{phase}-{step:06d}.metrics.json"))


def _checkpoint(project: Path, step: int) -> Path:
    return next(project.glob(f".envace/checkpoints/*/checkpoints/global_step_{step}"), project / "none")


def _on_disk(project: Path) -> str:
    """What a kill has left, in a few words."""
    recorded = max((s for s in range(1, STEPS + 1) if _recorded(project, s, "train")), default=0)
    there = [s for s in range(1, STEPS + 1) if _checkpoint(project, s).is_dir()]
    sealed = [s for s in there if (_checkpoint(project, s) / SEAL).is_file()]
    unsealed = [s for s in there if s not in sealed]
    parts = [f"step {recorded}", f"checkpoints {sealed}"]
    parts += [f"{unsealed} unsealed"] if unsealed else []
    parts += [path for path in ("models/trained", "models/policy", "reports/training") if (project / path).exists()]
    return ", ".join(parts)


def differing(one: Path, other: Path) -> Iterator[str]:
    """Which results of two projects are not the same bytes, and by how much their numbers differ."""
    for name in _REPORTS:
        first, second = (p / "reports/training" / name for p in (one, other))
        if first.read_bytes() != second.read_bytes():
            yield f"{name} ({_apart_in_lines(first, second)})" if name.endswith("jsonl") else name
    policies = sorted(p.relative_to(one) for p in one.glob("models/*/**/*") if p.is_file() and "base" not in p.parts)
    assert any(p.suffix == ".safetensors" for p in policies)
    for path in policies:
        if (one / path).read_bytes() != (other / path).read_bytes():
            yield f"{path} ({_apart(one / path, other / path)})" if path.suffix == ".safetensors" else str(path)


def _apart(one: Path, other: Path) -> str:
    from safetensors.torch import load_file

    first, second = load_file(one), load_file(other)
    return f"max difference {max(float((first[n] - second[n]).abs().max()) for n in first):.1e}"


def _apart_in_lines(one: Path, other: Path) -> str:
    first, second = ([json.loads(line) for line in p.read_text().splitlines()] for p in (one, other))
    numbers = [
        abs(a[key] - b.get(key, float("inf")))
        for a, b in zip(first, second, strict=False)
        for key in a
        if isinstance(a[key], float)
    ]
    return f"max difference {max(numbers, default=0.0):.1e}" if len(first) == len(second) else "other steps"


def main() -> int:
    """Print a line a point; the number of points that differ decides the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--phases", nargs="+", choices=PHASES, default=list(PHASES))
    parser.add_argument("--old-log-probs", choices=OLD_LOG_PROBS, default="rollout", help="train_policy.old_log_probs")
    parser.add_argument(
        "--folder",
        type=Path,
        help="where the projects go; what differs is kept there, and a base policy taken from there",
    )
    options = parser.parse_args()
    folder = Path(options.folder or tempfile.mkdtemp(prefix="envace-kill-points-"))
    params = load_params(Path(__file__).resolve().parents[2] / "params.yaml")
    base = folder / "base"
    base = base if (base / "model.safetensors").is_file() else make_base(params, base)
    reference = run_reference(folder / "reference", params, base, options.old_log_probs)
    whole = {phase: sum(s for (p, _), s in reference.seconds.items() if p == phase) for phase in PHASES}
    print("uninterrupted:", ", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in whole.items()), flush=True)
    print(f"{'point':>5}  {'killed in':<28}  {'resumed':<22}  {'end':<10}  on disk at the kill", flush=True)
    failed = 0
    for number, point in enumerate(draw(reference, options.points, options.seed, options.phases), 1):
        project = project_of(folder / f"point-{number}", params, base, options.old_log_probs)
        try:
            outcome = try_point(point, reference, project)
        except (AssertionError, subprocess.SubprocessError) as error:
            outcome = Outcome(point, "", "", f"the run failed: {error}")
        where = f"{point.phase} {point.step or ''} +{point.delay_s:.2f} s"
        end = "identical" if outcome.difference is None else outcome.difference
        print(f"{number:>5}  {where:<28}  {outcome.resumed:<22}  {end:<10}  {outcome.found}", flush=True)
        failed += outcome.difference is not None
        if outcome.difference is None:
            shutil.rmtree(project)
    print(f"{options.points - failed} of {options.points} identical", flush=True)
    if not failed and not options.folder:
        shutil.rmtree(folder)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
