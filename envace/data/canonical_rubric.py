"""Checklists as rubrics: criteria with ids that are unique in the task, canonical words, and weights that sum to 1."""

from __future__ import annotations

from typing import Any

from envace.data.schema_names import FOCUS
from envace.types import Criterion, Evidence, Rubric

_ROUNDING = 1e-3
"""A turn's weights that miss 1 by no more than this are left as they were written."""


def rubrics(checklists: list[list[list[dict[str, Any]]]]) -> list[Rubric]:
    """One rubric for each variant of a validated row's checklists."""
    return [
        Rubric(variant_index=v, criteria=[c for t, items in enumerate(variant) for c in _criteria(t, items)])
        for v, variant in enumerate(checklists)
    ]


def _criteria(turn: int, items: list[dict[str, Any]]) -> list[Criterion]:
    ids = {item["id"]: f"t{turn}.c{position}" for position, item in enumerate(items)}
    total = sum(item["weight"] for item in items)
    divisor = total if abs(total - 1) > _ROUNDING else 1
    return [
        Criterion(
            criterion_id=ids[item["id"]],
            turn_index=turn,
            target=FOCUS[item["focus_on"]],
            question=item["question"],
            pass_condition=item["pass_condition"],
            failure_examples=item["failure_examples"],
            evidence=[_evidence(entry) for entry in item["evidence"]],
            prerequisite_ids=[ids[needed] for needed in item["dependence"]],
            weight=item["weight"] / divisor,
            source_weight=item["weight"],
            is_gating=item["required_for_next_turn"],
        )
        for item in items
    ]


def _evidence(entry: dict[str, Any]) -> Evidence:
    return Evidence(turn=entry["turn"], step=entry["step"], source=FOCUS[entry["from"]], snippet=entry["snippet"])
