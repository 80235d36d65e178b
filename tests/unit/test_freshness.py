"""Files of the user outside DVC's graph: a change of their content is seen, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envace.config import Params, parse_params
from envace.files import sha256_file, write_json
from envace.freshness import checkpoint_changed, source_changed


def changed(params: Params, section: str, **values: str) -> Params:
    raw = params.model_dump(mode="json")
    raw[section] |= values
    return parse_params(raw, "params.yaml")


def test_the_sample_and_the_built_base_have_no_such_file(params: Params, tmp_path: Path) -> None:
    assert not source_changed(params, tmp_path)
    assert not checkpoint_changed(params, tmp_path)


def test_a_raw_file_is_compared_by_content(params: Params, tmp_path: Path) -> None:
    own = changed(params, "fetch_data", source="file", train_path="my.jsonl")
    assert source_changed(own, tmp_path), "never fetched"
    (tmp_path / "my.jsonl").write_text("{}\n")
    files = {"train.jsonl": {"sha256": sha256_file(tmp_path / "my.jsonl"), "rows": 1}}
    write_json(tmp_path / "data/raw/source.json", {"origin": "local files", "licence": "x", "files": files})
    assert not source_changed(own, tmp_path)
    os.utime(tmp_path / "my.jsonl", (0, 0))
    assert not source_changed(own, tmp_path), "a new date alone is no change"
    both = changed(own, "fetch_data", heldout_path=str(tmp_path / "other.jsonl"))
    assert source_changed(both, tmp_path), "the second file is missing"
    (tmp_path / "my.jsonl").write_text("[]\n")
    assert source_changed(own, tmp_path)


def test_files_of_a_pattern_are_compared_one_by_one(params: Params, tmp_path: Path) -> None:
    own = changed(params, "fetch_data", source="file", train_path="part-*.jsonl")
    for name in "ab":
        (tmp_path / f"part-{name}.jsonl").write_text(name)
    files = {f"train-0000{i}.jsonl": {"sha256": sha256_file(tmp_path / f"part-{n}.jsonl")} for i, n in enumerate("ab")}
    write_json(tmp_path / "data/raw/source.json", {"files": files})
    assert not source_changed(own, tmp_path)
    (tmp_path / "part-c.jsonl").write_text("c")
    assert source_changed(own, tmp_path), "one more"
    (tmp_path / "part-a.jsonl").unlink()
    assert source_changed(own, tmp_path), "another in the place of one"


@pytest.mark.parametrize("change", ["content", "new", "gone", "none"])
def test_a_given_checkpoint_is_compared_by_content(params: Params, tmp_path: Path, change: str) -> None:
    given, copy = tmp_path / "given", tmp_path / "models" / "base"
    for folder in (given, copy):
        folder.mkdir(parents=True)
        for name in ("config.json", "model.safetensors"):
            (folder / name).write_text(name)
    (given / "modeling.py").write_text("code is not copied, so it does not count")
    if change == "content":
        (given / "model.safetensors").write_text("MODEL.safetensors")
    if change == "new":
        (given / "tokenizer.json").write_text("{}")
    if change == "gone":
        (given / "config.json").unlink()
    own = changed(params, "build_base_model", source="folder", path=str(given))
    assert checkpoint_changed(own, tmp_path) == (change != "none")
