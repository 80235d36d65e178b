"""Explicit Arrow schemas of the prepared tables, so that no column's type depends on which rows come first."""

from __future__ import annotations

from typing import Any


def _struct(**fields: Any) -> Any:
    """A struct without nulls inside."""
    import pyarrow as pa

    return pa.struct([pa.field(name, kind, nullable=False) for name, kind in fields.items()])


def _list(kind: Any) -> Any:
    import pyarrow as pa

    return pa.list_(pa.field("item", kind, nullable=False))


def tasks_schema() -> Any:
    """tasks.parquet: one nested row a task, field by field like `envace.types.Task`."""
    import pyarrow as pa

    text, whole, number, truth = pa.string(), pa.int32(), pa.float64(), pa.bool_()
    tool = _struct(name=text, description=text, parameters_schema=text, schema_sha256=text)
    call = _struct(tool_name=text, arguments=text, call_id=text)
    result = _struct(call_id=text, content=text, is_error=truth)
    step = _struct(
        step_index=whole,
        reasoning=text,
        reply=text,
        tool_calls=_list(call),
        tool_results=_list(result),
        content_frame=text,
    )
    turn = _struct(turn_index=whole, user_message=text, reference_steps=_list(step))
    evidence = _struct(turn=whole, step=whole, source=text, snippet=text)
    criterion = _struct(
        criterion_id=text,
        turn_index=whole,
        target=text,
        question=text,
        pass_condition=text,
        failure_examples=_list(text),
        evidence=_list(evidence),
        prerequisite_ids=_list(text),
        weight=number,
        source_weight=number,
        is_gating=truth,
    )
    turn_outcome = _struct(
        required_calls=_list(call), ordered=truth, forbidden_tools=_list(text), required_facts=_list(text)
    )
    columns = {
        "task_id": text,
        "content_sha256": text,
        "split": text,
        "system_prompt": text,
        "tools": _list(tool),
        "turns": _list(turn),
        "rubrics": _list(_struct(variant_index=whole, criteria=_list(criterion))),
        "outcome": _struct(turns=_list(turn_outcome)),
        "world": _struct(domain=text, seed=pa.int64()),
        "flags": _list(text),
        "provenance": text,
    }
    optional = ("system_prompt", "outcome", "world")
    return pa.schema([pa.field(name, kind, nullable=name in optional) for name, kind in columns.items()])


def _flat(columns: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


def transitions_schema() -> Any:
    """transitions.parquet: one row a recorded call with its result."""
    import pyarrow as pa

    text, whole = pa.string(), pa.int32()
    return _flat(
        {
            "task_id": text,
            "split": text,
            "turn_index": whole,
            "step_index": whole,
            "call_index": whole,
            "tool_name": text,
            "arguments": text,
            "arguments_sha256": text,
            "result": text,
            "is_error": pa.bool_(),
        }
    )


def criteria_schema() -> Any:
    """criteria.parquet: one row a criterion of a variant."""
    import pyarrow as pa

    text, whole, number = pa.string(), pa.int32(), pa.float64()
    return _flat(
        {
            "task_id": text,
            "split": text,
            "variant_index": whole,
            "criterion_id": text,
            "turn_index": whole,
            "target": text,
            "question": text,
            "pass_condition": text,
            "weight": number,
            "source_weight": number,
            "is_gating": pa.bool_(),
            "prerequisites": whole,
        }
    )


def tools_schema() -> Any:
    """tools.parquet: one row a distinct tool (name, description and schema), with the number of tasks that offer it."""
    import pyarrow as pa

    text = pa.string()
    return _flat(
        {"name": text, "description": text, "parameters_schema": text, "schema_sha256": text, "tasks": pa.int32()}
    )
