"""The benchmarks of the method still run, at their smallest sizes, and print their ratios. Nothing is timed here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SMALL_ROLLOUTS = "--tasks 2 --repeats 2 --slots 2 --typical 4 --longest 12 --hidden 16 --layers 1 --positions 1024"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments", "ratios"),
    [
        ("bench_rollout_scheduler", SMALL_ROLLOUTS, 2),
        ("bench_straggler", "--rollouts 3 --words 2 --calls 1 --tries 1 --hidden 16 --layers 1 --positions 1024", 1),
        ("bench_retokenise", "--few 2 --many 4 --words 1 --tries 1", 1),
        ("bench_advantage", "--outputs 300 --tries 1", 1),
        ("bench_rollout_step", "--tasks 2 --rollouts 2 --tries 1", 1),
        ("bench_train_packing", "--tasks 2 --rollouts 2 --tries 1", 2),
    ],
)
def test_a_benchmark_prints_its_ratio_and_its_goal(project_root: Path, name: str, arguments: str, ratios: int) -> None:
    done = subprocess.run(
        [sys.executable, str(project_root / "benchmarks" / f"{name}.py"), *arguments.split()],
        env={**os.environ, "PYTHONPATH": str(project_root), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("(goal") == ratios
