"""What is known about a trained policy when it is registered: hashes, training curve, evaluation; all from files."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.errors import TrackingError
from envace.files import read_json, sha256_file, sha256_tree

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
    evaluation: dict[str, Any]
    curve: list[dict[str, Any]]
    reports: list[Path]


def read_evidence(root: Path = Path()) -> Evidence:
    """Raises TrackingError that names the stage to run, where a file is missing or not readable."""
    evaluation = _decode(root / EVALUATION, "evaluate_policy")
    if not (root / POLICY).is_dir():
        raise _missing(root / POLICY, "train_policy")
    if not (root / MANIFEST).is_file():
        raise _missing(root / MANIFEST, "prepare_data")
    return Evidence(
        checkpoint=root / POLICY,
        model_sha256=sha256_tree(root / POLICY),
        data_sha256=sha256_file(root / MANIFEST),
        evaluation_sha256=sha256_file(root / EVALUATION),
        evaluation=evaluation,
        curve=_curve(root / TRAINING),
        reports=[root / EVALUATION, *(p for p in (root / SUMMARY, root / MANIFEST) if p.is_file())],
    )


def git_commit(root: Path = Path()) -> str | None:
    """The commit checked out at `root`, or None outside git or before the first commit."""
    try:
        found = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--verify", "--quiet", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return None
    return found.stdout.strip() if found.returncode == 0 else None


def _curve(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise _missing(path, "train_policy")
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
            step = row["step"]
        except (ValueError, TypeError, KeyError):
            step, row = None, {}
        if isinstance(step, bool) or not isinstance(step, int):
            raise TrackingError(f"{path}, line {number}: expected a JSON object with a whole-number `step`")
        rows.append(row)
    return rows


def _decode(path: Path, stage: str) -> dict[str, Any]:
    if not path.is_file():
        raise _missing(path, stage)
    try:
        value = read_json(path)
    except ValueError as error:
        raise TrackingError(f"{path}: not JSON ({error}); run `envace run --force {stage}`") from None
    if not isinstance(value, dict):
        raise TrackingError(f"{path}: expected an object, found {type(value).__name__}; run stage {stage} again")
    return value


def _missing(path: Path, stage: str) -> TrackingError:
    return TrackingError(f"{path}: not found; stage {stage} writes it")
