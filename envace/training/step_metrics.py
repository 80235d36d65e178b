"""The figures of one training step or validation, by role, from rollout records and row labels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from envace.chat.parser import parse_response
from envace.rewards.health import UnknownCause, unknown_fraction
from envace.rollout.prefixes import shared_prefix_shares
from envace.training.labels import LabelledBatch
from envace.types import Role, StopReason, Verdict


def rollout_metrics(records: Sequence[dict[str, Any]], prefix: str = "") -> dict[str, float]:
    """Means over scorable rollouts, shares over all of them. Figures without anything to average are left out."""
    if not records:
        return {}
    scored = [r for r in records if r["reward"] is not None]
    outputs = [o for r in records for o in r["outputs"]]
    rewarded = [(o["role"], r["reward"]) for r in scored for o in r["outputs"]]
    metrics: dict[str, float] = {"rollouts": len(records), "unscorable_share": 1 - len(scored) / len(records)}
    if scored:
        metrics["reward/mean"] = fmean(r["reward"] for r in scored)
        metrics["reward/success"] = fmean(float(r["success"]) for r in scored)
    for role in Role:
        mine = [o for o in outputs if o["role"] == role.value]
        metrics[f"{role.value}/outputs"] = len(mine)
        if mine:
            metrics[f"{role.value}/tokens_mean"] = fmean(o["tokens"] for o in mine)
        rewards = [reward for written_by, reward in rewarded if written_by == role.value]
        if rewards:  # over outputs, as the role's baseline is: a long rollout counts for each of them
            metrics[f"{role.value}/reward_mean"] = fmean(rewards)
    rehearsals = [o for o in outputs if o["role"] == Role.REHEARSE.value]
    if rehearsals:
        metrics["rehearse/malformed_share"] = fmean(float(parse_response(o["text"]) is None) for o in rehearsals)
    metrics |= shared_prefix_shares(outputs, "engine/")
    metrics |= _judge_metrics(records)
    stops = Counter(r["stop_reason"] for r in records)
    metrics.update({f"stop/{reason.value}": stops[reason.value] / len(records) for reason in StopReason})
    return {prefix + name: round(float(value), 6) for name, value in metrics.items()}


def _judge_metrics(records: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Verdicts, and unknown ones by cause, from the records: the same wherever and whenever they were judged."""
    turns = [turn for record in records for turn in json.loads(record["turns"])]
    verdicts = [{criterion: Verdict(v) for criterion, v in turn["verdicts"].items()} for turn in turns]
    unknown = unknown_fraction(verdicts)
    if unknown is None:
        return {}
    given = Counter(v for turn in verdicts for v in turn.values())
    causes = Counter(cause for turn in turns for cause in turn.get("unknown_causes", {}).values())
    return {
        "judge/verdicts": given.total(),
        **{f"judge/{verdict.value}": given[verdict] for verdict in Verdict},
        **{f"judge/unknown_{cause.value}": causes[cause.value] for cause in UnknownCause},
        "judge/unknown_fraction": unknown,
    }


def advantage_metrics(batch: LabelledBatch) -> dict[str, float]:
    """Size of the advantages by role, the share of outputs without any learning signal, and counts of rows."""
    metrics: dict[str, float] = {}
    for role in Role:
        pairs = zip(batch.outputs, batch.scalar_advantages, strict=True)
        mine = [a for (row, span), a in pairs if row.counts and span.role == role]
        if mine:
            metrics[f"{role.value}/advantage_abs_mean"] = fmean(abs(a) for a in mine)
            metrics[f"{role.value}/advantage_zero_share"] = fmean(float(a == 0) for a in mine)
    metrics["rows/all"] = len(batch.rows)
    metrics["rows/padding"] = sum(row.role not in set(Role) for row in batch.rows)
    metrics["rows/unscorable"] = sum(not row.scorable and row.role in set(Role) for row in batch.rows)
    return {name: round(float(value), 6) for name, value in metrics.items()}
