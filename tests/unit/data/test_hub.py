"""Fetching from a hub, against a small one on this machine: what is recorded, and all that can go wrong."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from envace.config import FetchDataParams, HubParams, Params
from envace.data.fetching import fetch, raw_files
from envace.errors import DataError
from envace.files import read_json
from pipeline_steps.fetch_data import run
from tests.unit.fake_hub import REVISION, TOKEN, Hub, serving

ROWS = b'[{"uuid": "a"},\n {"uuid": "b"}]\n'
MORE = b'{"uuid": "c"}\n'


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    files = {"data/train-0.json": ROWS, "data/train-1.jsonl": MORE}
    with serving(Hub(files=files, large=("data/train-0.json",)), monkeypatch) as running:
        yield running


@pytest.fixture
def fetch_data(params: Params) -> Callable[..., FetchDataParams]:
    """Makes the parameters of the stage, with changes to those of the hub."""

    def make(**changes: Any) -> FetchDataParams:
        hub = HubParams(
            repository="someone/cm2",
            type="dataset",
            revision=REVISION,
            train_files="data/train-*",
            heldout_files=None,
            licence="CC-BY-4.0",
        )
        return params.fetch_data.model_copy(update={"source": "hub", "hub": hub.model_copy(update=changes)})

    return make


MakeParams = Callable[..., FetchDataParams]


def test_files_of_a_pinned_revision_arrive_with_their_source(hub: Hub, fetch_data: MakeParams, tmp_path: Path) -> None:
    hub.files["data/test.jsonl"] = MORE
    record = fetch(fetch_data(heldout_files="data/test.jsonl"), tmp_path)
    assert record == read_json(tmp_path / "source.json")
    assert {key: record[key] for key in record if key != "files"} == {
        "source": "hub",
        "origin": "Hugging Face dataset someone/cm2",
        "repository": "someone/cm2",
        "type": "dataset",
        "revision": REVISION,
        "licence": "CC-BY-4.0",
        "card_licence": "cc-by-4.0",
    }
    assert record["files"] == {
        name: {"rows": rows, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, rows, data in (
            ("heldout.jsonl", 1, MORE),
            ("train-00000.json", 2, ROWS),
            ("train-00001.jsonl", 1, MORE),
        )
    }
    assert raw_files(tmp_path) == {
        "train": [tmp_path / "train-00000.json", tmp_path / "train-00001.jsonl"],
        "heldout": [tmp_path / "heldout.jsonl"],
    }
    assert (tmp_path / "train-00000.json").read_bytes() == ROWS
    assert all(REVISION in path for path in hub.asked), "only the pinned revision is asked for"
    assert set(hub.authorizations) == {f"Bearer {TOKEN}"}


def test_only_the_fetch_itself_is_online(hub: Hub, fetch_data: MakeParams, tmp_path: Path) -> None:
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import OfflineModeIsEnabled

    for changes in ({}, {"train_files": "nothing"}):
        try:
            fetch(fetch_data(**changes), tmp_path)
        except DataError:
            assert changes
        assert constants.HF_HUB_OFFLINE and os.environ["HF_HUB_OFFLINE"] == "1"
        with pytest.raises(OfflineModeIsEnabled):
            HfApi(endpoint=f"http://127.0.0.1:{hub.port}").repo_info("someone/cm2", repo_type="dataset")


def _change(**changes: Any) -> Callable[[Hub], None]:
    def apply(hub: Hub) -> None:
        for name, value in changes.items():
            setattr(hub, name, value)

    return apply


@pytest.mark.parametrize(
    ("change", "parameters", "why"),
    [
        (
            _change(spoil=lambda data: data.replace(b"a", b"x")),
            {},
            r"train-0.json: the bytes that came have the digest",
        ),
        (
            _change(spoil=lambda data: data.replace(b"c", b"x")),
            {},
            r"train-1.jsonl: the bytes that came have the digest",
        ),
        (_change(spoil=lambda data: data[:-1]), {}, r"31 bytes came, the hub states 32|states 32"),
        (_change(), {"revision": "main"}, "must be a commit, 40 hexadecimal digits"),
        (_change(), {"revision": REVISION.upper()}, "must be a commit"),
        (_change(), {"revision": "f" * 40}, r"no such revision; correct fetch_data\.hub\.revision"),
        (_change(), {"repository": "someone/other"}, "no such repository"),
        (_change(), {"repository": "../etc/passwd"}, "not the name of a repository"),
        (_change(), {"licence": "MIT"}, r"states the licence 'cc-by-4\.0'.*says 'MIT'"),
        (_change(licence=["mit", "cc0-1.0"]), {}, "states the licence 'mit, cc0-1.0'"),
        (
            _change(),
            {"train_files": "*.parquet"},
            r"no file matches.*there are data/train-0\.json, data/train-1\.jsonl",
        ),
        (_change(), {"heldout_files": "data/*.jsonl"}, "matches both"),
        (_change(files={"data/train-0.txt": ROWS}), {}, r"'data/train-0\.txt' matches.*does not end in"),
        (_change(files={"data/train-0.json": b"[{"}), {}, r"^data/train-0\.json: ends inside the array"),
        (_change(refusal=(403, "GatedRepo")), {}, r"gated: accept its conditions.*HF_TOKEN"),
        (_change(refusal=(503, "")), {}, r"the hub refuses \(503\)"),
        (_change(page=b"<html>log in</html>"), {}, "answers, but not as the hub does"),
        (_change(page=b"[]"), {}, "answers, but not as the hub does"),
    ],
)
def test_what_goes_wrong_is_one_clear_error_and_leaves_nothing(
    hub: Hub,
    fetch_data: MakeParams,
    params: Params,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Hub], None],
    parameters: dict[str, Any],
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    change(hub)
    with pytest.raises(DataError, match=why) as raised:
        run(params.model_copy(update={"fetch_data": fetch_data(**parameters)}))
    assert TOKEN not in str(raised.value)
    assert list(tmp_path.rglob("*")) == [tmp_path / "data"]


def test_no_network_is_a_clear_error(
    fetch_data: MakeParams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: Hub
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nothing listens there
    with pytest.raises(DataError, match=r"http://127\.0\.0\.1:9 cannot be reached.*check the network"):
        fetch(fetch_data(), tmp_path)


def test_a_card_without_a_licence_leaves_the_configured_one(hub: Hub, fetch_data: MakeParams, tmp_path: Path) -> None:
    hub.licence = None
    record = fetch(fetch_data(), tmp_path)
    assert (record["licence"], record["card_licence"]) == ("CC-BY-4.0", None)


def test_names_in_the_repository_never_become_paths_here(hub: Hub, fetch_data: MakeParams, tmp_path: Path) -> None:
    hub.files = {"../../outside.json": ROWS}
    with suppress(DataError):
        fetch(fetch_data(train_files="*.json"), tmp_path / "a" / "b" / "raw")
    assert not list(tmp_path.rglob("outside*"))
