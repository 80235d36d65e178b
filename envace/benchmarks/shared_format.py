"""A run in the results format that every benchmark of the project shares (envace/evaluation/results.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from envace.benchmarks.harness import Benchmark
from envace.benchmarks.metrics import by_category
from envace.benchmarks.protocol import Provenance, Row
from envace.evaluation.results import FORMAT, figure

RESULTS_FILE = "results.json"


def shared_results(benchmark: Benchmark, record: Provenance, rows: Sequence[Row]) -> dict[str, Any]:
    """One result for the official and one for the strict score, with a group for every category, null if not run."""
    harness = record.spec.harness
    found = by_category(rows)
    results = []
    for metric in ("official", "strict"):
        groups: dict[str, Any] = {}
        for category in benchmark.sizes:
            mine = found.get(category, ())
            if metric == "official":
                values = [row.score for row in mine if row.official_counted and row.score is not None]
            else:
                values = [row.strict for row in mine] if any(row.status != "not_run" for row in mine) else []
            groups[category] = figure(values)
        results.append(
            {
                "benchmark": benchmark.title,
                "environment": f"{harness.name} {harness.commit or harness.version}",
                "policy": record.policy_name or record.spec.agent.kind,
                "metric": metric,
                "digest": record.digest,
                "groups": groups,
            }
        )
    return {"format": FORMAT, "results": results}
