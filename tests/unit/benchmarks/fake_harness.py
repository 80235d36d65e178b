"""A harness for tests: a driver of a few lines that does what its spec's options say."""

from __future__ import annotations

import sys
from pathlib import Path

from envace.benchmarks.bfcl import columns
from envace.benchmarks.harness import Benchmark
from envace.benchmarks.metrics import by_category, percent
from envace.benchmarks.protocol import Agent, Harness, Spec
from envace.files import sha256_text

DRIVER = '''"""Two tasks; what happens is in spec.json's options."""
import json, os, sys, time
from pathlib import Path
from envace.benchmarks.protocol import ABORTED, DriverReport, Row, Spec

folder = Path(sys.argv[1])
spec = Spec.model_validate_json((folder / "spec.json").read_text())
print("progress 1 2 a"); print("a line for the log"); print("key", os.environ.get("SOME_KEY"), os.environ.get("OTHER"))
(folder / "starts").open("a").write("x")
if spec.options.get("hang"):
    (folder / "pid").write_text(str(os.getpid())); time.sleep(3600)
if spec.options.get("break"):
    sys.exit("it broke")
first = len((folder / "starts").read_text()) == 1
fails, aborts = first and (spec.options.get("abort") or spec.options.get("flaky")), first and spec.options.get("abort")
rows = [Row(run=spec.run, task_id=f"irrelevance_{n}", category="irrelevance", score=float(n), status="scored",
            official_counted=True) for n in range(2)]
if fails:
    rows[1] = Row(run=spec.run, task_id="irrelevance_1", category="irrelevance", score=1.0, status="infra_failure",
                  official_counted=True)
(folder / "results.jsonl").write_text("".join(row.model_dump_json() + chr(10) for row in rows))
report = DriverReport(versions={"fake": "1"}, data_sha256={"data": "0" * 64}, aborted="too many" if aborts else None)
(folder / "driver.json").write_text(report.model_dump_json())
sys.exit(ABORTED if aborts else 0)
'''


def fake_benchmark(root: Path) -> Benchmark:
    """The benchmark in project `root`, installed: its interpreter is this one."""
    folder = root / "harnesses/fake"
    folder.mkdir(parents=True)
    (folder / "requirements.txt").write_text("fake==1\n", encoding="utf-8")
    (folder / "driver.py").write_text(DRIVER, encoding="utf-8")
    python = root / ".envace/venvs/fake/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{":".join(p for p in sys.path if p)}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (root / ".envace/venvs/fake/.installed").write_text(sha256_text("fake==1\n"), encoding="utf-8")

    def measure(rows, mode):  # type: ignore[no-untyped-def]
        categories = {"irrelevance": percent(by_category(rows).get("irrelevance", ()), mode)}
        return {**categories, **columns({**categories, "live_irrelevance": categories["irrelevance"]})}

    return Benchmark(
        name="fake",
        title="Fake",
        package="fake",
        version="1",
        driver="driver.py",
        sizes={"irrelevance": 2},
        measure=measure,
        columns={"bfcl_irrelevance": "irrelevance"},
        passes=("SOME_KEY",),
        ignores={"--judge-url": "no model judges"},
    )


def fake_spec(**options: object) -> Spec:
    """A run of the idle agent."""
    harness = Harness(name="fake", kind="pypi", version="1")
    return Spec(benchmark="fake", harness=harness, agent=Agent(kind="do-nothing"), options=options)
