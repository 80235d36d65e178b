"""Local files are brought into place byte for byte, one or several a split; what is no raw file is a clear error."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from envace.config import FetchDataParams, Params
from envace.data.fetching import fetch, raw_files
from envace.errors import DataError
from envace.files import sha256_file, write_json

LINE = b'{"uuid": "a"}\n'


@pytest.fixture
def local(params: Params) -> Callable[..., FetchDataParams]:
    """Makes the parameters of the stage for local files."""

    def make(train: Any, heldout: Any = None) -> FetchDataParams:
        given = {"train_path": str(train), "heldout_path": heldout and str(heldout)}
        return params.fetch_data.model_copy(update={"source": "file", **given})

    return make


Local = Callable[..., FetchDataParams]


def test_shards_are_taken_in_name_order_and_copied_byte_for_byte(local: Local, tmp_path: Path) -> None:
    mine, raw = tmp_path / "mine", tmp_path / "raw"
    mine.mkdir()
    (mine / "b.jsonl.gz").write_bytes(gzip.compress(LINE * 2, mtime=0))
    (mine / "a.json").write_bytes(b"[" + LINE + b"]")
    pq.write_table(pa.table({"uuid": ["x", "y", "z"]}), mine / "c.parquet")
    (mine / "held.jsonl").write_bytes(LINE)
    record = fetch(local(mine / "[abc].*", mine / "held.jsonl"), raw)
    expected = {"heldout.jsonl": "held.jsonl", "train-00000.json": "a.json"}
    expected |= {"train-00001.jsonl.gz": "b.jsonl.gz", "train-00002.parquet": "c.parquet"}
    assert {name: file["sha256"] for name, file in record["files"].items()} == {
        name: sha256_file(mine / source) for name, source in expected.items()
    }
    assert [file["rows"] for file in record["files"].values()] == [1, 1, 2, 3]
    found = raw_files(raw)
    assert list(found) == ["train", "heldout"]
    assert [path.name for path in found["train"]] == list(expected)[1:]
    assert str(mine) not in (raw / "source.json").read_text(encoding="utf-8")


def test_one_file_keeps_its_plain_name(local: Local, tmp_path: Path) -> None:
    (tmp_path / "my file[1].json").write_bytes(b"[" + LINE + b"]")
    assert list(fetch(local(tmp_path / "my file[1].json"), tmp_path / "raw")["files"]) == ["train.json"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("none.json", "no such file"),
        ("*.parquet", "no such file"),
        (".", "this is a folder; name the file in it, or a pattern"),
        ("rows.csv", "unknown kind of file"),
        ("empty.json", "empty"),
        ("cut.json", "ends inside the array"),
        ("x" * 5000, "not the name of a file"),
        ("a\0b.json", "not the name of a file"),
        ("/dev/null", "not a regular file"),
    ],
)
def test_what_is_no_raw_file_is_named_as_the_user_knows_it(local: Local, tmp_path: Path, given: str, why: str) -> None:
    (tmp_path / "rows.csv").write_bytes(LINE)
    (tmp_path / "empty.json").touch()
    (tmp_path / "cut.json").write_bytes(b"[" + LINE)
    with pytest.raises(DataError, match=why) as raised:
        fetch(local(tmp_path / given), tmp_path / "raw")
    assert str(tmp_path / "raw") not in str(raised.value)


def test_raw_files_refuses_a_folder_that_was_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="run the stage fetch_data first"):
        raw_files(tmp_path)
    write_json(tmp_path / "source.json", {"files": {"../train.json": {}}})
    with pytest.raises(DataError, match="not the name of a raw file"):
        raw_files(tmp_path)


def test_what_was_fetched_is_recorded(local: Local, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_bytes(LINE)
    record = fetch(local(tmp_path / "rows.jsonl"), tmp_path / "raw")
    assert json.loads((tmp_path / "raw" / "source.json").read_text(encoding="utf-8")) == record
    assert (record["source"], record["origin"], record["licence"]) == ("file", "local files", "not stated")
