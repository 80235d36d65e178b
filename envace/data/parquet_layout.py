"""Which columns of a Parquet file are read, and which types of columns cannot hold what a row says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envace.data.aliases import DROPPED_EXTRA_KEYS
from envace.errors import DataError

TEXT_OR_NESTED = frozenset({"messages", "checklists", "checklist", "extra_info", "outcome", "world"})
"""Columns that may be nested, or hold the same as JSON text."""
_FREE_FORM = ("tools", "arguments")
"""Names of values whose keys differ from row to row: JSON text, or Arrow spoils them."""


def wanted_columns(schema: Any) -> list[str]:
    """The columns to read, nested ones by their path. What the converted layout repeats or is not needed stays out."""
    import pyarrow.types as types

    names = list(schema.names)
    if "extra_info" not in names or not types.is_struct(schema.field("extra_info").type):
        return names
    extra = [field.name for field in schema.field("extra_info").type]
    if "messages" not in extra:
        return names
    kept = [f"extra_info.{name}" for name in extra if name not in DROPPED_EXTRA_KEYS]
    repeated = ("extra_info", "messages", *(["tools"] if "tools" in extra else []))
    return [name for name in names if name not in repeated] + kept


def check_schema(path: Path, schema: Any) -> None:
    """Raises DataError, which names the column, for types that JSON has not and for free-form values in structs."""
    for field in schema:
        _check(path, field, field.name)


def _check(path: Path, field: Any, place: str) -> None:
    import pyarrow.types as types

    if field.name in _FREE_FORM and _holds_keys(field.type):
        raise DataError(
            f"{path}: {place!a} has the Arrow type {str(field.type)[:80]}: Arrow gives every row the keys of all rows, "
            "with nulls, and in its own order, so what the rows said is lost; write it as JSON text "
            "(json.dumps, without sorting) from the original rows"
        )
    for child in _children(field.type):
        _check(path, child, f"{place}.{child.name}" if types.is_struct(field.type) else place)
    if not _children(field.type) and not _is_json(field.type):
        raise DataError(
            f"{path}: {place!a} has the type {field.type}, which JSON has not; write it as text, or leave it out"
        )


def _children(kind: Any) -> list[Any]:
    return [kind.field(index) for index in range(kind.num_fields)]


def _holds_keys(kind: Any) -> bool:
    """Whether a struct or a map is somewhere in the type."""
    import pyarrow.types as types

    return types.is_struct(kind) or types.is_map(kind) or any(_holds_keys(child.type) for child in _children(kind))


def _is_json(kind: Any) -> bool:
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = (types.is_string, types.is_large_string, types.is_string_view, types.is_null, types.is_boolean)
    return any(test(kind) for test in (*tests, types.is_integer, types.is_floating))
