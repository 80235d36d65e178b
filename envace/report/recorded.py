"""Finds recorded rollouts on disk and chooses what to show of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.errors import DataError
from envace.report.unfinished import RECORDS, newest_records, read_records

Row = dict[str, Any]

FILES = {
    "train_policy": Path("reports/training/rollouts.parquet"),
    "evaluate_policy": Path("reports/evaluation/rollouts.parquet"),
}
_COLUMNS = {"task_id", "rollout_index", "reward", "success", "stop_reason", "error", "turns", "outputs"}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which rollouts; None chooses nothing, but without a step the last one of training is taken."""

    task: str | None = None
    step: int | None = None
    phase: str | None = None
    policy: str | None = None


def rollouts_file(root: Path, policy: str | None = None) -> Path:
    """The rollouts of the project: of training where they are there, else of evaluation, which alone names policies.

    Of a training that is unfinished it is the folder of its newest records. Raises DataError where there are none.
    """
    training, evaluation = (root / FILES[stage] for stage in ("train_policy", "evaluate_policy"))
    if not policy and training.is_file():
        return training
    if not policy and (records := newest_records(root)):
        return records
    if evaluation.is_file():
        return evaluation
    asked = ["evaluate_policy"] if policy else list(FILES)
    stages = " and ".join(f"{FILES[stage]} (stage {stage})" for stage in asked)
    beside = "" if policy else f", nor any {RECORDS}"
    raise DataError(f"no rollouts here: there is no {stages}{beside}; run `envace run`, or name a file")


def recorded_rows(path: Path) -> list[Row]:
    """The rows of a rollouts file, or of a folder of an unfinished training's records.

    Raises DataError for a file that is missing, foreign or of another version.
    """
    import pyarrow as pa

    from envace.rollout.records import read_rollouts

    of_records = path.is_dir() and any(path.glob("*.rollouts.jsonl"))
    if path.is_dir() and not of_records:
        raise DataError(f"{path}: this is a folder; name the rollouts.parquet in it")
    if not of_records and not path.is_file():
        stage = next((s for s, known in FILES.items() if path.as_posix().endswith(known.as_posix())), None)
        advice = f"stage {stage} writes it: run `envace run`" if stage else "name a rollouts.parquet of a run"
        raise DataError(f"{path}: no such file; {advice}")
    try:
        rows = read_records(path) if of_records else read_rollouts(path)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: not a table of rollouts ({type(error).__name__}: {reason})") from None
    if not rows:
        raise DataError(f"{path}: holds no rollouts; run the stage that wrote it again (`envace run --force STAGE`)")
    for row in rows:
        if missing := sorted(_COLUMNS - row.keys()):
            raise DataError(f"{path}: not a table of rollouts: no column {', '.join(missing)}")
        if not isinstance(row["turns"], list) or not all(isinstance(t, dict) and "steps" in t for t in row["turns"]):
            advice = "run the stage that wrote it again (`envace run --force STAGE`)"
            raise DataError(f"{path}: written by another version of EnvACE, turns without steps; {advice}")
    return rows


def choose(rows: Sequence[Row], choice: Choice, path: Path) -> list[list[Row]]:
    """Groups of rows (one task, one step, one policy), those with the widest spread of rewards first.

    Raises DataError where nothing fits, naming what there is.
    """
    chosen = list(rows)
    for name, wanted in (("phase", choice.phase), ("policy", choice.policy), ("step", choice.step)):
        if wanted is not None:
            chosen = _only(chosen, name, wanted, path)
    if choice.task is not None:
        kept = [r for r in chosen if r["task_id"].startswith(choice.task)]
        if not kept:
            some = ", ".join(sorted({r["task_id"] for r in chosen})[:5])
            raise DataError(f"{path}: no task that begins with {choice.task!r} among these rollouts; some are: {some}")
        chosen = kept
    if choice.step is None and chosen and "step" in chosen[0]:
        trained = [r for r in chosen if r["phase"] == "train"] if choice.phase is None else []
        chosen = trained or chosen
        last = max(r["step"] for r in chosen)
        chosen = [r for r in chosen if r["step"] == last]
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in chosen:
        labels = ("phase", "step", "policy", "split", "environment", "task_id")
        groups[tuple(row.get(label) for label in labels)].append(row)
    ordered = sorted(groups.items(), key=lambda item: (-_spread(item[1]), str(item[0])))
    return [sorted(members, key=lambda r: r["rollout_index"]) for _, members in ordered]


def params_of_project(root: Path) -> dict[str, Any]:
    """The `advantage` section of the project's params.yaml, or the defaults of the method where there is none."""
    from envace.config import load_params

    path = root / "params.yaml"
    return load_params(path).advantage.model_dump() if path.is_file() else {}


def _only(rows: list[Row], name: str, wanted: str | int, path: Path) -> list[Row]:
    if rows and name not in rows[0]:
        raise DataError(f"{path}: its rollouts have no {name}; leave --{name} out")
    kept = [r for r in rows if r[name] == wanted]
    if not kept:
        there = ", ".join(str(v) for v in sorted({r[name] for r in rows}))
        raise DataError(f"{path}: no rollout of {name} {wanted} among these; there is: {there or 'nothing'}")
    return kept


def _spread(rows: Sequence[Row]) -> float:
    rewards = [r["reward"] for r in rows if r["reward"] is not None]
    return max(rewards) - min(rewards) if rewards else -1.0
