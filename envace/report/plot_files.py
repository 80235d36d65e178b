"""The curves as small CSV files, which `dvc plots show` and `dvc plots diff` draw and compare between runs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from envace.report.curves import Curves
from envace.report.headline import Row
from envace.report.health import Health


def plot_files(curves: Curves, health: Health, rows: Sequence[Row]) -> dict[str, str]:
    """File name -> content. Heads are always there; a step that lacks a figure has an empty cell."""
    steps = sorted({*curves.stop_reasons, *(p.step for p in curves.reward)})
    reward = {p.step: p.mean for p in curves.reward}
    roles = {role: {p.step: p.mean for p in points} for role, points in curves.reward_by_role.items()}
    training = [
        [
            step,
            *(found.get(step) for found in (reward, roles["act"], roles["rehearse"])),
            *(found.get(step) for found in (health.malformed, health.errors)),
            curves.stop_reasons.get(step, {}).get("completed", 0.0),
        ]
        for step in steps
    ]
    success = {p.step: p.mean for p in curves.validation_success}
    validation = [[p.step, p.mean, success.get(p.step)] for p in curves.validation_reward]
    heldout = [[r.policy, r.reward, r.success, r.fidelity_exact, r.error_recall] for r in rows]
    shares = ("malformed_rehearsals", "error_rehearsals", "completed")
    return {
        "training.csv": _table(("step", "reward", "act_reward", "rehearse_reward", *shares), training),
        "validation.csv": _table(("step", "reward", "success"), validation),
        "heldout.csv": _table(("policy", "reward", "success", "fidelity_exact", "error_recall"), heldout),
    }


def _table(head: Sequence[str], rows: Iterable[Sequence[str | int | float | None]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([f"{cell:.6f}" if isinstance(cell, float) else cell for cell in row] for row in rows)
    return text.getvalue()
