"""What is known about a trained policy when it is registered: hashes, training curve, evaluation; all from files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.config import Params
from envace.errors import DataError
from envace.files import sha256_file, sha256_tree
from envace.stage_outputs import read_record, written_by
from envace.tracking.benchmark import benchmark_sha256

POLICY = Path("models/policy")
MANIFEST = Path("data/prepared/manifest.json")
EVALUATION = Path("reports/evaluation/metrics.json")
TRAINING = Path("reports/training/metrics.jsonl")
SUMMARY = Path("reports/training/summary.json")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One policy with everything that was measured on it. `curve` has a mapping of figures for each logged step."""

    checkpoint: Path
    model_sha256: str
    data_sha256: str
    evaluation_sha256: str
    benchmark_sha256: str
    evaluation: dict[str, Any]
    curve: list[dict[str, Any]]
    reports: list[Path]


def read_evidence(params: Params, root: Path = Path()) -> Evidence:
    """Raises DataError that names the stage to run, where a file is missing or not readable."""
    checkpoint = written_by("train_policy", root / POLICY)
    manifest = written_by("prepare_data", root / MANIFEST)
    evaluation = read_record("evaluate_policy", root / EVALUATION)
    return Evidence(
        checkpoint=checkpoint,
        model_sha256=sha256_tree(checkpoint),
        data_sha256=sha256_file(manifest),
        evaluation_sha256=sha256_file(root / EVALUATION),
        benchmark_sha256=benchmark_sha256(params, root),
        evaluation=evaluation,
        curve=read_curve(written_by("train_policy", root / TRAINING)),
        reports=[root / EVALUATION, written_by("train_policy", root / SUMMARY), root / TRAINING, manifest],
    )


def read_curve(path: Path) -> list[dict[str, Any]]:
    """The figures of each logged step. Raises DataError that names the line which is none."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
            step = row["step"]
        except (ValueError, TypeError, KeyError):
            step, row = None, {}
        if isinstance(step, bool) or not isinstance(step, int):
            raise DataError(f"{path}, line {number}: expected a JSON object with a whole-number `step`")
        rows.append(row)
    return rows
