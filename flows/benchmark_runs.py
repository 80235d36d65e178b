"""Runs of a benchmark one after another, kept by DVC and MLflow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from envace.benchmarks.harness import Benchmark
from envace.benchmarks.identity import run_id
from envace.benchmarks.protocol import REFERENCE_AGENTS, Metrics, Spec
from envace.benchmarks.run import RUNS, run_benchmark
from envace.errors import ConfigError, StageError

Say = Callable[[str], None]


def run_all(
    benchmark: Benchmark,
    specs: Sequence[Spec],
    label: str | None,
    say: Say,
    *,
    track: bool = True,
    root: Path = Path(),
) -> bool:
    """Run each spec in a folder of its own below results/benchmarks. Returns whether none was stopped by failures."""
    complete = True
    for spec in specs:
        who = (
            spec.agent.kind if spec.agent.kind in REFERENCE_AGENTS else label or str(spec.policy and spec.policy.model)
        )
        folder = root / RUNS / benchmark.name / run_id(spec, who)
        say(f"{benchmark.title}, {who}, run {spec.run}: {folder}")
        found = run_benchmark(benchmark, spec, folder, say, root=root, policy_name=who)
        for line in told(found):
            say(line)
        complete = complete and found.aborted is None
        if track:
            from envace.tracking.public_benchmark import record_benchmark

            record_benchmark(folder, version_parts(spec.model_version), root)
    if track:
        _keep(root, say)
    return complete


def told(found: Metrics) -> list[str]:
    """What a person sees at the end of a run."""
    kind = " (subset: not a published figure)" if found.subset else ""
    lines = [f"  official / strict, percent{kind}"]
    for name, official in found.official.items():
        if official is not None or found.strict[name] is not None:
            lines.append(f"  {name:24} {_number(official):>7} / {_number(found.strict[name]):>7}")
    for kind in ("model_failure", "infra_failure"):
        count = sum(getattr(each, kind) for each in found.counts.values())
        again = " (the same command tries them again)" if kind == "infra_failure" and not found.aborted else ""
        lines += [f"  {kind.replace('_', ' ')}s: {count}{again}"] if count else []
    for reason in dict.fromkeys(found.not_run.values()):
        lines.append(f"  not run ({reason}): {', '.join(name for name, why in found.not_run.items() if why == reason)}")
    return [*lines, *([f"  {found.aborted}; the same command goes on from here"] if found.aborted else [])]


def _keep(root: Path, say: Say) -> None:
    """Let DVC keep the results; git then sees results/benchmarks.dvc."""
    from flows.dvc import track

    if not (root / ".dvc").is_dir():
        return
    try:
        track(RUNS, root)
    except StageError as error:
        say(f"the results are not kept by DVC yet: {error}")


def registered(version: str | None, root: Path = Path(), *, look_up: bool = True) -> str | None:
    """NAME/VERSION with the number that an alias stands for now, since an alias may stand for another one tomorrow.

    A number is taken on trust unless `look_up`. Raises ConfigError where it is not written that way, TrackingError
    where there is no such version.
    """
    parts = version_parts(version)
    if parts is None or (parts[1].isdecimal() and not look_up):
        return version
    from envace.tracking.promotion import find_version
    from envace.tracking.store import open_store

    found = find_version(open_store(root), *parts)
    return f"{found.name}/{found.version}"


def version_parts(text: str | None) -> tuple[str, str] | None:
    """Name and version of NAME/VERSION. Raises ConfigError."""
    if text is None:
        return None
    name, _, number = text.rpartition("/")
    if not name or not number:
        raise ConfigError(f"--version {text}: write it as NAME/VERSION, for example envace-tiny/champion")
    return name, number


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
