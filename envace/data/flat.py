"""Flat views of kept rows: one record a row and one a criterion, for expectations, for profiles and for looking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from envace.data.checks import Row

FlatRecord = dict[str, Any]
FLAT_ROWS, FLAT_CRITERIA = "flat_rows.parquet", "flat_criteria.parquet"
COUNTS = ("turns", "messages", "tools", "calls", "results", "error_results", "items", "row_bytes")


def flat_row(row: Row) -> FlatRecord:
    """Sizes and counts of one kept row. `items` counts those of the first variant."""
    messages = row.messages
    return {
        "file": row.findings.file,
        "row_index": row.findings.row_index,
        "task_id": row.findings.task_id,
        "turns": sum(message["role"] == "user" for message in messages),
        "messages": len(messages),
        "tools": len(row.record["tools"]),
        "calls": len(row.exchanges),
        "results": len(row.results),
        "error_results": len(row.error_results),
        "items": sum(len(items) for items in row.record["checklists"][0]),
        "row_bytes": row.text_bytes,
    }


def flat_criteria(row: Row) -> Iterator[FlatRecord]:
    """One record for each item of each variant of one kept row."""
    file, task_id = row.findings.file, row.findings.task_id
    for v, variant in enumerate(row.record["checklists"]):
        for t, items in enumerate(variant):
            for item in items:
                yield {
                    "file": file,
                    "task_id": task_id,
                    "criterion": f"{task_id}/{v}/{t}/{item['id']}",
                    "focus": item["focus_on"],
                    "weight": float(item["weight"]),
                    "is_gating": item["required_for_next_turn"],
                }


def rows_schema() -> Any:
    """Arrow schema of `flat_row`."""
    import pyarrow as pa

    texts = [pa.field(name, pa.string(), nullable=False) for name in ("file", "task_id")]
    counts = [pa.field(name, pa.int64(), nullable=False) for name in ("row_index", *COUNTS)]
    return pa.schema([*texts, *counts])


def criteria_schema() -> Any:
    """Arrow schema of `flat_criteria`."""
    import pyarrow as pa

    texts = [pa.field(name, pa.string(), nullable=False) for name in ("file", "task_id", "criterion", "focus")]
    rest = [pa.field("weight", pa.float64(), nullable=False), pa.field("is_gating", pa.bool_(), nullable=False)]
    return pa.schema([*texts, *rest])
