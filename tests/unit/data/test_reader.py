"""The reader: the same rows from every layout, a named fault for a broken row, one clear error for a broken file."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import envace.data.array_ends as array_ends
import envace.data.text_stream as text_stream
from envace.data.array_ends import EndFinder
from envace.data.reader import RawRow, count_rows, read_rows
from envace.errors import DataError

JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda children: st.one_of(st.lists(children, max_size=3), st.dictionaries(st.text(), children, max_size=3)),
    max_leaves=10,
)
ROWS = st.lists(st.dictionaries(st.text(), JSON_VALUES, max_size=4), min_size=1, max_size=4)


def _write(folder: Path, layout: str, rows: list[dict[str, Any]], ensure_ascii: bool) -> Path:
    if layout.startswith("lines"):
        text = "".join(json.dumps(row, ensure_ascii=ensure_ascii) + "\n" for row in rows)
    else:
        text = json.dumps(rows, ensure_ascii=ensure_ascii, indent=2 if layout == "array indented" else None)
    data = text.encode("utf-8", "surrogatepass")
    path = folder / "rows"
    path.write_bytes(gzip.compress(data) if layout.endswith("gzip") else data)
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(rows=ROWS, ensure_ascii=st.booleans(), block=st.integers(1, 40))
@pytest.mark.parametrize("layout", ["array", "array indented", "array gzip", "lines", "lines gzip"])
def test_every_layout_gives_the_rows_that_were_written(
    tmp_path: Path, layout: str, rows: list[dict[str, Any]], ensure_ascii: bool, block: int
) -> None:
    ensure_ascii = ensure_ascii or any("\ud800" <= c <= "\udfff" for c in json.dumps(rows, ensure_ascii=False))
    path = _write(tmp_path, layout, rows, ensure_ascii)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_stream, "BLOCK_BYTES", block)  # rows and even characters lie across blocks
        read = list(read_rows(path))
    assert [row.value for row in read] == rows
    assert [row.index for row in read] == list(range(len(rows)))
    assert count_rows(path) == len(rows)


def _rows(tmp_path: Path, text: str, name: str = "rows.json") -> list[RawRow]:
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return list(read_rows(path))


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ('{"a": NaN}', "NaN is not a number"),
        ('{"a": -Infinity}', "-Infinity is not a number"),
        ('{"a": 1e999}', "too large"),
        ('{"a": {"b": 1, "b": 2}}', "stands twice"),
        ('{"a": 1,}', "not JSON"),
        ("[1]", "must be an object"),
        ('{"a": ' + "[" * 5000 + "]" * 5000 + "}", "nested deeper"),
        ('{"a": ' + "1" * 5000 + "}", "digits"),
    ],
)
@pytest.mark.parametrize("layout", ["array", "lines"])
def test_a_broken_row_is_named_and_the_others_are_read(tmp_path: Path, bad: str, why: str, layout: str) -> None:
    good = ['{"a": "[{"}', '{"a": "\\"]"}']
    text = f"[{good[0]},\n{bad},\n{good[1]}]" if layout == "array" else f"{good[0]}\n{bad}\n{good[1]}\n"
    first, broken, last = _rows(tmp_path, text)
    assert (first.value, last.value) == ({"a": "[{"}, {"a": '"]'})
    assert broken.value is None and why in (broken.fault or "") and broken.place == "line 2"
    assert broken.text.strip() == bad


def _end(text: str) -> int:
    """Where an element ends, character by character."""
    depth, in_string, is_escaped = 0, False, False
    for index, mark in enumerate(text):
        if is_escaped or (in_string and mark not in '"\\'):
            is_escaped = False
        elif mark == "\\":
            is_escaped = True
        elif mark == '"':
            in_string = not in_string
        elif mark in "[{":
            depth += 1
        elif mark in "]}" and depth:
            depth -= 1
        elif mark in ",]" and not depth:
            return index
    return -1


@settings(max_examples=300)
@given(
    text=st.text('"\\[]{},aé😀', max_size=60), cuts=st.lists(st.integers(0, 60), max_size=4), short=st.integers(0, 9)
)
def test_an_element_ends_where_its_strings_and_brackets_say(text: str, cuts: list[int], short: int) -> None:
    text = re.sub(r'\\+(?!["\\])', "", text)  # outside of strings it is no JSON, and escapes nothing but these two
    finder, begin, found = EndFinder(), 0, -1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_ends, "_SHORT", short)
        patch.setattr(array_ends, "_WINDOW", 1 + short)
        for end in sorted({min(cut, len(text)) for cut in cuts} | {len(text)}):
            found = finder.find(text[begin:end], 0)
            if found >= 0:
                found += begin
                break
            begin = end
    assert found == _end(text)


def test_what_closes_too_much_breaks_only_its_row(tmp_path: Path) -> None:
    first, second, third = _rows(tmp_path, '[{"a": 1}}, {"a": 2]}, {"a": 3}]')
    assert (first.text, second.text) == ('{"a": 1}}', '{"a": 2]}') and third.value == {"a": 3}
    with pytest.raises(DataError, match="ends inside the array"):
        _rows(tmp_path, '[{"a": 1}}')


def test_rows_behind_a_broken_one_are_still_told_apart(tmp_path: Path) -> None:
    rows = _rows(tmp_path, "[" + ",\n".join(['{"a": "],["}', '{"a": NaN}', '{"a" 1}', "", '{"a": "é"}'] * 4000) + "]")
    assert [row.value for row in rows] == [{"a": "],["}, None, None, None, {"a": "é"}] * 4000
    assert [row.place for row in rows] == [f"line {1 + index}" for index in range(20_000)]


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl", "rows.jsonl.gz"])
def test_progress_ends_with_all_bytes(tmp_path: Path, name: str) -> None:
    lines = '{"a": 1}\n' * 200_000
    data = (lines if "jsonl" in name else "[" + ",".join(lines.split()) + "]").encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    told: list[tuple[int, int]] = []
    assert count_rows(tmp_path / name, lambda done, total: told.append((done, total))) == 200_000
    assert told[-1] == ((tmp_path / name).stat().st_size,) * 2 and told == sorted(told)


def test_an_overlong_row_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n' + json.dumps({"a": "x" * 500}) + "\n", encoding="utf-8")
    short, long = read_rows(path, max_row_bytes=100)
    assert short.fault is None and long.value is None and long.fault_check == 34


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        ("uuid,messages\n", "neither a JSON array nor JSON lines"),
        ('"rows"', "neither"),
        ('[{"a": 1}, {"a": ', "ends inside the array"),
        ('[{"a": "x', "ends inside the array"),
        ('[{"a": 1}] {"a": 2}', "after the end"),
        ('[{"a": 1},\n]', "line 2: a comma stands before the bracket"),
        ('{"a": 1}\n{"a": ', "line 2 is cut short"),
        ('{\n  "a": 1\n}\n', "one row a line"),
    ],
)
def test_a_broken_file_is_one_clear_error(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(DataError, match=why) as raised:
        _rows(tmp_path, text)
    assert str(tmp_path / "rows.json") in str(raised.value)


def test_wrong_bytes_missing_files_and_folders_are_clear_errors(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(b'[{"a": "K\xf6ln"}]')
    with pytest.raises(DataError, match=r"not UTF-8: byte 0xf6 at offset 9"):
        list(read_rows(path))
    path.write_bytes('[{"a": 1}]'.encode("utf-16"))
    with pytest.raises(DataError, match="not UTF-8"):
        list(read_rows(path))
    with pytest.raises(DataError, match="this is a folder"):
        list(read_rows(tmp_path))
    with pytest.raises(DataError, match="no such file"):
        list(read_rows(tmp_path / "none.json"))
    path.write_bytes(gzip.compress(b'[{"a": 1}]' * 100)[:-20])
    with pytest.raises(DataError, match="damaged gzip"):
        list(read_rows(path))


def test_a_byte_order_mark_is_skipped_and_line_separators_do_not_end_a_line(tmp_path: Path) -> None:
    assert [row.value for row in _rows(tmp_path, '\ufeff{"a": "x\u2028y"}\n')] == [{"a": "x\u2028y"}]
