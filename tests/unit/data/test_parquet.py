"""Parquet in the converted layout: the same rows as its JSON, schemas byte for byte, and clear errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from envace.data.aliases import normalise_row
from envace.data.canonical import to_task
from envace.data.reader import RawRow, count_rows, read_rows
from envace.data.sample.rows import sample_rows
from envace.data.sample.world import build_world
from envace.data.schema_names import ROW_KEYS
from envace.errors import DataError
from envace.files import compact_json

TEXT = pa.string()
CALL = pa.struct({"id": TEXT, "type": TEXT, "function": pa.struct({"name": TEXT, "arguments": TEXT})})
MESSAGES = pa.list_(pa.struct({"role": TEXT, "content": TEXT, "tool_calls": pa.list_(CALL)}))
EVIDENCE = pa.list_(pa.struct({"turn": pa.int64(), "step": pa.int64(), "from": TEXT, "snippet": TEXT}))
ITEM = pa.struct(
    {
        "id": TEXT,
        "evidence": EVIDENCE,
        "focus_on": TEXT,
        "question": TEXT,
        "pass_condition": TEXT,
        "failure_examples": pa.list_(TEXT),
        "required_for_next_turn": pa.bool_(),
        "strictness": pa.bool_(),
        "dependence": pa.list_(TEXT),
        "weight": pa.float64(),
        "extra_info": pa.struct({"price_usd": pa.float64()}),
    }
)
CHECKLISTS = pa.list_(pa.list_(pa.list_(ITEM)))
INTERACTION = pa.struct({"name": TEXT, "checklist_list": CHECKLISTS})
EXTRA = pa.struct(
    {
        "messages": MESSAGES,
        "tools": TEXT,
        "interaction_kwargs": INTERACTION,
        "need_tools_kwargs": pa.bool_(),
        "original_index": pa.int64(),
    }
)
CONVERTED = pa.schema(
    {"uuid": TEXT, "messages": MESSAGES, "checklists": CHECKLISTS, "extra_info": EXTRA, "data_source": TEXT}
)


def _converted(row: dict[str, Any], index: int) -> dict[str, Any]:
    extra = {
        "messages": row["messages"],
        "tools": json.dumps(row["tools"], ensure_ascii=False),
        "interaction_kwargs": {"name": "checklist", "checklist_list": row["checklists"]},
        "need_tools_kwargs": False,
        "original_index": index,
    }
    head = {"uuid": row["uuid"], "messages": row["messages"][:1], "checklists": row["checklists"]}
    return {**head, "extra_info": extra, "data_source": "cm2"}


def _clean_rows(count: int) -> list[dict[str, Any]]:
    rows = sample_rows(build_world(0), count, 0, "train", 0.0)
    kept = ("uuid", "messages", "tools", "checklists")
    return [{key: row[key] for key in kept} for row in rows]


def _write(path: Path, rows: list[dict[str, Any]], schema: pa.Schema = CONVERTED, **options: Any) -> Path:
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, **options)
    return path


def _read(path: Path, **options: Any) -> list[RawRow]:
    return list(read_rows(path, **options))


def test_the_converted_layout_reads_as_its_json(tmp_path: Path) -> None:
    rows = [_converted(row, index) for index, row in enumerate(_clean_rows(40))]
    rows[3]["checklists"][0][0][0]["strictness"] = True  # a key that no other item has
    path = _write(tmp_path / "rows.parquet", rows, row_group_size=7)
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(compact_json(row) + "\n" for row in rows), encoding="utf-8")
    read, expected = _read(path), _read(lines)
    assert [row.index for row in read] == list(range(40)) and not any(row.fault for row in read)
    normalised = [normalise_row(row.value or {}) for row in read]
    # compared as text: the order of keys counts
    assert [compact_json(row) for row in normalised] == [
        compact_json(normalise_row(row.value or {})) for row in expected
    ]
    assert all(set(row) <= set(ROW_KEYS) for row in normalised)
    assert count_rows(path) == 40


def test_schemas_of_disjoint_keys_stay_byte_equal_from_parquet_to_the_task(tmp_path: Path) -> None:
    """ms-swift#10125: Arrow pads structs with nulls, which reach the prompt."""
    parameters: list[dict[str, Any]] = [
        {"type": "object", "properties": {"z": {"type": "string", "enum": ["b", "a"]}, "a": {"type": "integer"}}},
        {"type": "object", "required": ["q"], "properties": {"q": {"type": ["string", "null"], "default": None}}},
        {},
    ]
    rows = _clean_rows(3)
    for row, schema in zip(rows, parameters, strict=True):
        row["tools"].append(
            {"type": "function", "function": {"name": "extra", "description": "É", "parameters": schema}}
        )
    path = _write(tmp_path / "rows.parquet", [_converted(row, i) for i, row in enumerate(rows)])
    for raw, row in zip(_read(path), rows, strict=True):
        assert json.dumps(normalise_row(raw.value or {})["tools"]) == json.dumps(row["tools"])
        from_parquet = to_task(normalise_row(raw.value or {}), "train", [], "test")
        assert from_parquet.tools == to_task(normalise_row(row), "train", [], "test").tools


def test_unknown_keys_of_extra_info_are_not_lost_in_silence(tmp_path: Path) -> None:
    schema = pa.schema({"uuid": TEXT, "extra_info": pa.struct({"messages": MESSAGES, "tools": TEXT, "split": TEXT})})
    row = {"uuid": "a", "extra_info": {"messages": [], "tools": "[]", "split": "dev"}}
    (raw,) = _read(_write(tmp_path / "rows.parquet", [row], schema))
    assert normalise_row(raw.value or {})["extra_info"] == {"split": "dev"}


def test_nested_columns_may_be_json_text(tmp_path: Path) -> None:
    (row,) = _clean_rows(1)
    schema = pa.schema({key: TEXT for key in row})
    texts = {key: value if key == "uuid" else json.dumps(value) for key, value in row.items()}
    broken = {**texts, "messages": '[{"a": NaN}]'}
    good, bad = _read(_write(tmp_path / "rows.parquet", [texts, broken], schema))
    assert normalise_row(good.value or {}) == row
    assert bad.value is None and "'messages'" in (bad.fault or "") and bad.fault_check == 5


@pytest.mark.parametrize("holder", ["tools", "messages"])
def test_free_form_json_in_structs_is_refused_with_what_to_do(tmp_path: Path, holder: str) -> None:
    tools = [{"type": "function", "function": {"name": "a", "parameters": {"properties": {"x": {"type": "string"}}}}}]
    call = {"function": {"name": "a", "arguments": {"x": 1}}}
    row = {"uuid": "a", "tools": tools, "messages": [{"role": "assistant", "content": "", "tool_calls": [call]}]}
    if holder == "messages":
        row["tools"] = json.dumps(tools)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    for read in (_read, count_rows):
        with pytest.raises(DataError, match=r"with nulls.*write it as JSON text") as raised:
            read(path)
        assert str(path) in str(raised.value) and ("arguments" in str(raised.value)) == (holder == "messages")


def test_types_that_json_has_not_are_refused(tmp_path: Path) -> None:
    table = pa.table({"uuid": ["a"], "made": pa.array([0], pa.timestamp("s"))})
    pq.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=r"'made' has the type timestamp"):
        _read(tmp_path / "rows.parquet")


def test_bytes_that_are_no_text_and_nan_are_one_rows_fault(tmp_path: Path) -> None:
    texts = pa.array([b"good", b"K\xf6ln", b"\xed\xa0\xbd", b"fine", b"nan"], pa.binary()).cast(TEXT, safe=False)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"uuid": texts, "weight": [1.0, 1.0, 1.0, 1.0, float("nan")]}), path)
    rows = _read(path)
    assert [row.value is None for row in rows] == [False, True, True, False, True]
    assert all(row.fault_check == 5 for row in rows)
    assert "byte 0xf6 at offset 1 of a text in the column 'uuid'" in (rows[1].fault or "")
    assert [row.place for row in rows] == [f"row {index}" for index in range(5)]


def test_an_overlong_row_is_told_apart(tmp_path: Path) -> None:
    path = _write(tmp_path / "rows.parquet", [{"uuid": "a"}, {"uuid": "b" * 500}], pa.schema({"uuid": TEXT}))
    short, long = _read(path, max_row_bytes=100)
    assert short.value == {"uuid": "a"} and long.value is None and long.fault_check == 34


@pytest.mark.parametrize("damage", ["empty", "no footer", "cut", "flipped", "text"])
def test_a_damaged_file_is_one_clear_error(tmp_path: Path, damage: str) -> None:
    path = _write(
        tmp_path / "rows.parquet",
        [_converted(row, i) for i, row in enumerate(_clean_rows(50))],
        write_page_checksum=True,
    )
    data = path.read_bytes()
    spoilt = bytearray(data)
    spoilt[len(data) // 3] ^= 0xFF
    changed = {"empty": b"", "no footer": data[:-100], "cut": data[: len(data) // 2], "flipped": bytes(spoilt)}
    path.write_bytes(changed.get(damage, b'[{"uuid": "a"}]'))
    with pytest.raises(DataError, match=r"rows\.parquet: damaged, or not a Parquet file"):
        _read(path)


def test_a_file_without_rows_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="empty"):
        _read(_write(tmp_path / "rows.parquet", []))


def test_progress_ends_with_all_bytes(tmp_path: Path) -> None:
    path = _write(tmp_path / "rows.parquet", [_converted(row, i) for i, row in enumerate(_clean_rows(20))])
    told: list[tuple[int, int]] = []
    _read(path, on_bytes=lambda done, total: told.append((done, total)))
    assert told[-1] == (path.stat().st_size,) * 2 and told == sorted(told)
