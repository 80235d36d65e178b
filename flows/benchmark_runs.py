"""Runs of a benchmark one after another, kept by DVC and MLflow; and a checkpoint served for as long as they take."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from envace.benchmarks.harness import Benchmark
from envace.benchmarks.protocol import REFERENCE_AGENTS, Metrics, Spec
from envace.benchmarks.run import RUNS, run_benchmark, run_id
from envace.errors import BenchmarkError, ConfigError, StageError
from envace.processes import child_setup, end_group

Say = Callable[[str], None]
_ADDRESS = re.compile(r"serving (\S+) .* at (http://\S+/v1)")
_START_S = 300.0


def run_all(
    benchmark: Benchmark,
    specs: Sequence[Spec],
    label: str | None,
    version: str | None,
    say: Say,
    *,
    track: bool = True,
    root: Path = Path(),
) -> bool:
    """Run each spec in a folder of its own below results/benchmarks. Returns whether none was stopped by failures."""
    model = _version(version)
    complete = True
    for spec in specs:
        who = (
            spec.agent.kind if spec.agent.kind in REFERENCE_AGENTS else label or str(spec.policy and spec.policy.model)
        )
        folder = root / RUNS / benchmark.name / run_id(spec, who)
        say(f"{benchmark.title}, {who}, run {spec.run}: {folder}")
        found = run_benchmark(benchmark, spec, folder, say, root=root, policy_name=who, model_version=version)
        for line in told(found):
            say(line)
        complete = complete and found.aborted is None
        if track:
            from envace.tracking.public_benchmark import record_benchmark

            record_benchmark(folder, model, root)
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
        lines += [f"  {kind.replace('_', ' ')}s: {count}"] if count else []
    for reason in dict.fromkeys(found.not_run.values()):
        lines.append(f"  not run ({reason}): {', '.join(name for name, why in found.not_run.items() if why == reason)}")
    return [*lines, *([f"  {found.aborted}; the same command goes on from here"] if found.aborted else [])]


@contextmanager
def served(checkpoint: Path, concurrency: int, say: Say) -> Iterator[tuple[str, str]]:
    """`envace serve` on a free port of this machine. Gives address and model name. Raises BenchmarkError."""
    command = [sys.executable, "-c", "from flows.cli import main; main()", "serve", "--model", str(checkpoint)]
    command += ["--port", "0", "--max-concurrency", str(concurrency)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=child_setup(os.getpid()),
    )
    assert process.stderr is not None
    timer = threading.Timer(_START_S, process.kill)
    timer.start()
    try:
        said = []
        for line in process.stderr:
            said.append(line.rstrip())
            if found := _ADDRESS.search(line):
                break
        else:
            raise BenchmarkError(f"{checkpoint} could not be served: {'; '.join(said[-3:]) or 'it took too long'}")
        timer.cancel()
        threading.Thread(target=process.stderr.read, daemon=True).start()  # so that it never blocks on a full pipe
        say(f"serving {checkpoint} at {found[2]} for this run")
        yield found[2], found[1]
    finally:
        timer.cancel()
        end_group(process.pid, grace_s=10.0)
        process.wait()


def _keep(root: Path, say: Say) -> None:
    """Let DVC keep the results; git then sees results/benchmarks.dvc."""
    from flows.dvc import track

    if not (root / ".dvc").is_dir():
        return
    try:
        track(RUNS, root)
    except StageError as error:
        say(f"the results are not kept by DVC yet: {error}")


def _version(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    name, _, number = text.rpartition("/")
    if not name or not number:
        raise ConfigError(f"--version {text}: write it as NAME/VERSION, for example envace-tiny/champion")
    return name, number


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
