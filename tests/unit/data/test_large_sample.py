"""Large sample rows: of the size asked for, without a finding, the same on every run; written in every format."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envace.config import Params
from envace.data.reader import read_rows
from envace.data.sample import World, build_world
from envace.data.sample.catalogue import CATALOGUE
from envace.data.sample.conversations import draw_conversations
from envace.data.sample.large import large_rows
from envace.data.sample.pretty import pretty_json
from envace.data.sample.row_faults import ROW_FAULTS
from envace.data.sample.rows import sample_rows, stream_rows
from envace.data.sample.turns import Partition
from envace.data.sample.writing import write_rows
from envace.data.validation import validate_files
from envace.errors import DataError
from envace.files import sha256_text

ROW_BYTES, COUNT = 53_000, 60
PARTITIONS: tuple[Partition, ...] = ("train", "heldout", "hard")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def large(world: World) -> dict[Partition, list[dict[str, Any]]]:
    return {partition: list(islice(large_rows(world, 1, partition, ROW_BYTES), COUNT)) for partition in PARTITIONS}


@given(JSON, st.integers(0, 2))
def test_indented_text_is_that_of_python(value: Any, depth: int) -> None:
    nested = value
    for _ in range(depth):
        nested = [nested]
    text = pretty_json(value, depth)
    for level in reversed(range(depth)):
        text = "[\n" + "    " * (level + 1) + text + "\n" + "    " * level + "]"
    assert text == json.dumps(nested, indent=4, ensure_ascii=False)


@pytest.mark.parametrize("row_bytes", [40_000, 53_000, 100_000])
def test_rows_have_the_size_that_was_asked_for_and_vary(world: World, row_bytes: int) -> None:
    sizes = [len(pretty_json(row, 1).encode()) for row in islice(large_rows(world, 0, "train", row_bytes), 50)]
    assert abs(mean(sizes) / row_bytes - 1) < 0.05
    assert pstdev(sizes) > 0.05 * row_bytes and max(sizes) < 1.6 * row_bytes


def test_sizes_out_of_bounds_are_refused_in_words(world: World) -> None:
    with pytest.raises(DataError, match="40000 to 100000"):
        next(large_rows(world, 0, "train", 1000))


@pytest.mark.parametrize("row_bytes", [None, ROW_BYTES])
@pytest.mark.parametrize("partition", PARTITIONS)
def test_rows_pass_every_check(
    world: World, params: Params, tmp_path: Path, partition: Partition, row_bytes: int | None
) -> None:
    write_rows(tmp_path / "a.json", stream_rows(world, COUNT, 2, partition, row_bytes))
    source = {"source": "sample"}
    result = validate_files({partition: [tmp_path / "a.json"]}, params.validate_data, tmp_path / "made", source)
    assert (result.files[partition].kept, result.failures, result.warnings) == (COUNT, [], [])
    assert set(result.flags) <= {"recorded_tool_error"}  # which is meant


def test_large_rows_are_longer_and_fuller_conversations(large: dict[Partition, list[dict[str, Any]]]) -> None:
    for rows in large.values():
        assert all(len(row["tools"]) == len(CATALOGUE) == 20 for row in rows)
        assert all(row["messages"][0]["role"] == "system" for row in rows)
        assert mean(len(row["checklists"][0]) for row in rows) > 3
        schemas = {json.dumps(tool["function"]["parameters"]) for row in rows for tool in row["tools"]}
        assert len(schemas) > 400  # as in real corpora, where remembering schemas helps little


def test_rows_are_unique_and_partitions_share_no_message(large: dict[Partition, list[dict[str, Any]]]) -> None:
    said = {partition: [_said(row) for row in rows] for partition, rows in large.items()}
    assert all(len(set(texts)) == len(texts) for texts in said.values())
    assert len({row["uuid"] for rows in large.values() for row in rows}) == 3 * COUNT
    messages = [{text for texts in made for text in texts} for made in said.values()]
    assert len(set().union(*messages)) == sum(len(texts) for texts in messages)


@pytest.mark.slow
def test_a_hundred_thousand_conversations_are_different(world: World) -> None:
    drawn = draw_conversations(world, 0, "train", "large tasks", lambda rng: rng.randint(3, 5))
    assert len({sha256_text(conversation.key) for conversation in islice(drawn, 100_000)}) == 100_000


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.json.gz", "a.jsonl.gz"])
@pytest.mark.parametrize("row_bytes", [None, ROW_BYTES])
def test_the_same_seed_gives_the_same_bytes_in_every_format(tmp_path: Path, name: str, row_bytes: int | None) -> None:
    first, second = tmp_path / "first" / name, tmp_path / "second" / name
    for path in (first, second):
        assert write_rows(path, stream_rows(build_world(5), 12, 5, "train", row_bytes, 0.2)) == 12
    assert first.read_bytes() == second.read_bytes()
    made = [row.value for row in read_rows(first)]
    assert made == list(stream_rows(build_world(5), 12, 5, "train", row_bytes, 0.2))


def test_a_file_is_indented_like_cm2s(tmp_path: Path, world: World) -> None:
    rows = list(stream_rows(world, 3, 0, "train", ROW_BYTES))
    write_rows(tmp_path / "a.json", rows)
    assert (tmp_path / "a.json").read_text("utf-8") == json.dumps(rows, indent=4, ensure_ascii=False) + "\n"
    write_rows(tmp_path / "b.json.gz", rows)
    assert gzip.decompress((tmp_path / "b.json.gz").read_bytes()) == (tmp_path / "a.json").read_bytes()
    write_rows(tmp_path / "c.json", [])
    assert json.loads((tmp_path / "c.json").read_text("utf-8")) == []


def test_ordinary_rows_are_those_of_the_bundled_sample(world: World) -> None:
    assert list(stream_rows(world, 30, 0, "train")) == sample_rows(world, 30, 0, "train")


@pytest.mark.parametrize(
    ("partition", "count", "sha256"),
    [
        ("heldout", 120, "c456a2587b41d36e8827f189b39814f7b85e6e025d799682f49b5162199d41b0"),
        ("hard", 60, "04b37c97f08aea531edd7c8057cffb6366535640b76324ddc70b4049bc1068f3"),
    ],
)
def test_ordinary_rows_stay_what_results_were_measured_on(
    world: World, partition: Partition, count: int, sha256: str
) -> None:
    assert sha256_text(json.dumps(sample_rows(world, count, 0, partition), ensure_ascii=False)) == sha256


def test_a_longer_file_begins_with_the_shorter_one(world: World) -> None:
    assert list(stream_rows(world, 5, 0, "train", ROW_BYTES)) == list(stream_rows(world, 9, 0, "train", ROW_BYTES))[:5]


@pytest.mark.parametrize("row_bytes", [None, ROW_BYTES])
def test_the_share_that_was_asked_for_is_spoiled_by_all_kinds(world: World, row_bytes: int | None) -> None:
    kinds = len(ROW_FAULTS)
    right = list(stream_rows(world, 10 * kinds, 0, "train", row_bytes))
    spoiled = list(stream_rows(world, 10 * kinds, 0, "train", row_bytes, 0.1))
    assert spoiled[0] == right[0]
    assert kinds - 1 <= sum(one != other for one, other in zip(right, spoiled, strict=True)) <= kinds


@pytest.mark.parametrize("name", ["a.txt", "a.parquet", "folder.json"])
def test_what_cannot_be_written_is_refused_in_words(tmp_path: Path, world: World, name: str) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(DataError, match=name):
        write_rows(tmp_path / name, stream_rows(world, 2, 0, "train"))
    assert [path.name for path in tmp_path.iterdir()] == ["folder.json"]


def test_an_interrupted_file_is_not_there(tmp_path: Path, world: World) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield from stream_rows(world, 2, 0, "train")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(tmp_path / "a.json", broken())
    assert list(tmp_path.iterdir()) == []


def _said(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(message["content"] for message in row["messages"] if message["role"] == "user")
