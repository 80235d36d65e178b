"""The few numbers that everything is about: held-out reward and success of each evaluated policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.files import read_json

METRICS = Path("reports/evaluation/metrics.json")
POLICIES = {
    "base": "base (start of training)",
    "trained": "trained by rehearsal",
    "clean": "ceiling: clean references",
    "control": "control: more supervised steps",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One policy on the held-out tasks, its tools executed by code. Means with standard errors; None: not measured.

    Beside them, how true the policy rehearses: the share of recorded results that it rehearses exactly, and the share
    of recorded errors that it rehearses as errors.
    """

    policy: str
    reward: float | None
    reward_se: float | None
    success: float | None
    success_se: float | None
    fidelity_exact: float | None = None
    error_recall: float | None = None


def headline(root: Path = Path()) -> list[Row]:
    """The rows of the last evaluation, empty before the first one. Policies that were not evaluated are left out."""
    path = root / METRICS
    return rows_of(read_json(path)) if path.is_file() else []


def rows_of(evaluation: dict[str, Any]) -> list[Row]:
    """The rows of a decoded evaluation."""
    rows = []
    for policy in POLICIES:
        heldout = (evaluation.get("policies", {}).get(policy) or {}).get("heldout") or {}
        if found := heldout.get("true"):
            fidelity = heldout.get("fidelity") or {}
            values = [found.get(k) for k in ("reward", "reward_se", "success", "success_se")]
            values += [fidelity.get("exact"), fidelity.get("error_recall")]
            rows.append(Row(policy, *values))
    return rows


def table(rows: list[Row]) -> list[str]:
    """The rows as lines of text for a terminal."""
    if not rows:
        return ["held-out tasks: not evaluated yet"]
    title = "held-out tasks, tools run by code"
    width = max(len(title), *(len(POLICIES[r.policy]) + 2 for r in rows))
    lines = [f"{title:<{width}}  {'reward':<15}  success"]
    for row in rows:
        reward, success = with_error(row.reward, row.reward_se), with_error(row.success, row.success_se)
        lines.append(f"{'  ' + POLICIES[row.policy]:<{width}}  {reward:<15}  {success}")
    return lines


def markdown(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| held-out tasks, tools run by code | reward | success |", "|---|---|---|"]
    for row in rows:
        cells = [POLICIES[row.policy], with_error(row.reward, row.reward_se), with_error(row.success, row.success_se)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) if rows else "Not evaluated yet."


def with_error(mean: float | None, error: float | None) -> str:
    """`0.812 ± 0.025`, or a dash where nothing was measured."""
    if mean is None:
        return "–"
    return f"{mean:.3f}" if error is None else f"{mean:.3f} ± {error:.3f}"
