"""How fast raw rows become tasks: validate_data and prepare_data at three sizes, each stage in a process of its own.

The input is the large sample (rows of about CM2's size, whose tool schemas differ from row to row), made in a temporary
folder that goes with the run. Printed are rows and megabytes a second, the peak of resident memory, and whether the
time a row stays the same as files grow. `fetch_data` (copy and count) is timed beside, outside the goal.

Run: python benchmarks/bench_ingest.py [--rows 1000,4000,8000] [--row-bytes 53000]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import yaml

from envace.data.sample.rows import stream_rows
from envace.data.sample.world import build_world
from envace.data.sample.writing import write_rows

ROOT = Path(__file__).resolve().parents[1]
STAGES = ("fetch_data", "validate_data", "prepare_data")
MEASURED = STAGES[1:]
POLL_S = 0.1


@dataclass(frozen=True)
class Measured:
    """Wall time of one stage, and its peak of resident memory in MiB, processes below it included."""

    seconds: float
    peak: float


@dataclass(frozen=True)
class Size:
    """What one size took."""

    rows: int
    megabytes: float
    stages: dict[str, Measured]

    @property
    def seconds(self) -> float:
        """The stages of the goal together."""
        return sum(self.stages[stage].seconds for stage in MEASURED)

    @property
    def peak(self) -> float:
        """The larger peak of those stages."""
        return max(self.stages[stage].peak for stage in MEASURED)


def main() -> None:
    """Measure every size and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", default="1000,4000,8000", help="sizes, rising, with commas between them")
    parser.add_argument("--row-bytes", type=int, default=53_000, help="mean size of a row as indented JSON")
    options = parser.parse_args()
    counts = [int(count) for count in options.rows.split(",")]
    print("   rows      MB  fetch s validate s prepare s  rows/s   MB/s peak MiB")
    sizes = []
    for count in counts:
        sizes.append(measure(count, options.row_bytes))
        print(line(sizes[-1]), flush=True)
    if len(sizes) > 1:
        small, large = sizes[0], sizes[-1]
        ratio = (large.seconds / large.rows) / (small.seconds / small.rows)
        print(f"time a row, {large.rows} against {small.rows} rows: {ratio:.2f} (1 is linear; start-up makes it less)")
        if large.rows > small.rows:
            further = (large.seconds - small.seconds) / (large.rows - small.rows)
            print(f"each further row: {1000 * further:.2f} ms")


def line(size: Size) -> str:
    """One row of the table."""
    times = {stage: measured.seconds for stage, measured in size.stages.items()}
    speeds = f"{size.rows / size.seconds:7.0f} {size.megabytes / size.seconds:6.1f} {size.peak:8.0f}"
    parts = f"{times['fetch_data']:8.1f} {times['validate_data']:10.1f} {times['prepare_data']:9.1f}"
    return f"{size.rows:7d} {size.megabytes:7.1f} {parts} {speeds}"


def measure(rows: int, row_bytes: int) -> Size:
    """Make a file of so many rows and run the stages on it, in a temporary project."""
    with tempfile.TemporaryDirectory(prefix="envace-bench-") as name:
        project = Path(name)
        raw = project / "input.json"
        write_rows(raw, stream_rows(build_world(1), rows, 1, "train", row_bytes))
        params = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
        params["fetch_data"] |= {"source": "file", "train_path": str(raw), "licence": "Apache-2.0"}
        (project / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
        return Size(rows, raw.stat().st_size / 1e6, {stage: run_stage(stage, project) for stage in STAGES})


def run_stage(stage: str, project: Path) -> Measured:
    """One stage as the pipeline runs it. Ends the benchmark with the stage's own message where it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    began = time.monotonic()
    with tempfile.TemporaryFile() as told:
        command = [sys.executable, "-m", f"pipeline_steps.{stage}"]
        process = psutil.Popen(command, cwd=project, env=environment, stdout=told, stderr=subprocess.STDOUT)
        peak = 0.0
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            peak = max(peak, resident(process))
            time.sleep(POLL_S)
        seconds = time.monotonic() - began
        _, status, usage = ended
        if status:
            told.seek(0)
            sys.exit(f"{stage} failed on {project.name}:\n{told.read().decode(errors='replace')}")
    return Measured(seconds, max(peak, usage.ru_maxrss / 1024))


def resident(process: psutil.Process) -> float:
    """Resident memory in MiB of a process and all below it."""
    total = 0
    try:
        for each in (process, *process.children(recursive=True)):
            total += each.memory_info().rss
    except psutil.Error:
        pass  # it ends just now
    return total / 2**20


if __name__ == "__main__":
    main()
