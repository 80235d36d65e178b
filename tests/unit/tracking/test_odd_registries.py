"""Registries of an odd kind: in a folder whose name means something in a URI, and with a version registered by hand."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from envace.config import Params
from envace.errors import TrackingError
from envace.files import sha256_tree
from envace.tracking.presence import is_registered
from envace.tracking.promotion import recorded_evaluation
from envace.tracking.store import database


@pytest.mark.parametrize("name", ["plain", "run#1", "what?", "100%20"])
def test_a_policy_is_found_whatever_the_folder_is_called(tmp_path: Path, params: Params, name: str) -> None:
    root = tmp_path / name
    policy = root / "models/policy"
    policy.mkdir(parents=True)
    (policy / "config.json").write_text("{}", encoding="utf-8")
    database(root).parent.mkdir(parents=True)
    model, at = params.register_model.model_name, policy.as_uri()
    with closing(sqlite3.connect(database(root))) as store, store:
        store.execute("create table model_versions (name text, version integer, storage_location text, status text)")
        store.execute("create table model_version_tags (name text, version integer, key text, value text)")
        store.execute("insert into model_versions values (?, 1, ?, 'READY')", (model, at))
    assert not is_registered(params, root)
    with closing(sqlite3.connect(database(root))) as store, store:
        row = (model, sha256_tree(policy))
        store.execute("insert into model_version_tags values (?, 1, 'model_sha256', ?)", row)
    assert is_registered(params, root)


def test_a_version_that_was_registered_by_hand_is_told() -> None:
    version = cast("Any", SimpleNamespace(name="envace", version="3", tags={}))
    with pytest.raises(TrackingError, match=r"envace/3: .* no tag run_id"):
        recorded_evaluation(cast("Any", None), version)
