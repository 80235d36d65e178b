"""Flat views of kept rows: one record a row and one a criterion, for expectations and for counting."""

from __future__ import annotations

from typing import Any

from envace.data.checks import Row
from envace.data.results import is_error_result

FlatRecord = dict[str, Any]


def flat_row(row: Row) -> FlatRecord:
    """Sizes and counts of one kept row."""
    messages = row.messages
    results = [message["content"] for message in messages if message["role"] == "tool"]
    variants = row.record["checklists"]
    return {
        "file": row.findings.file,
        "row_index": row.findings.row_index,
        "task_id": row.findings.task_id,
        "turns": sum(message["role"] == "user" for message in messages),
        "messages": len(messages),
        "tools": len(row.record["tools"]),
        "calls": sum(len(message["tool_calls"]) for message in messages),
        "results": len(results),
        "error_results": sum(is_error_result(content) for content in results),
        "items": sum(len(items) for variant in variants for items in variant),
        "row_bytes": row.text_bytes,
    }


def flat_criteria(row: Row) -> list[FlatRecord]:
    """One record for each item of each variant of one kept row."""
    return [
        {
            "file": row.findings.file,
            "task_id": row.findings.task_id,
            "variant": v,
            "turn": t,
            "item": item["id"],
            "criterion": f"{row.findings.task_id}/{v}/{t}/{item['id']}",
            "focus": item["focus_on"],
            "weight": float(item["weight"]),
            "is_gating": item["required_for_next_turn"],
        }
        for v, variant in enumerate(row.record["checklists"])
        for t, items in enumerate(variant)
        for item in items
    ]
