"""The MLflow store: several first users at once, and a damaged one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envace.errors import TrackingError
from envace.tracking.store import artifact_root, database, experiment_id, open_store

USER = """
import sys
from pathlib import Path
from envace.tracking.store import experiment_id, open_store
client = open_store(Path(sys.argv[1]))
run = client.create_run(client.get_experiment_by_name("Default").experiment_id)
client.log_metric(run.info.run_id, "x", 1.0)
client.set_terminated(run.info.run_id)
"""


def test_several_first_users_at_once_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", USER, str(tmp_path)]
    users = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for user in users:
        _, err = user.communicate(timeout=180)
        assert user.returncode == 0, err
    client = open_store(tmp_path)
    runs = client.search_runs(["0"])
    assert [r.data.metrics for r in runs] == [{"x": 1.0}] * 4


def test_paths_are_absolute_and_experiments_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert database().is_absolute() and artifact_root() == tmp_path / ".envace" / "mlflow" / "artifacts"
    client = open_store()
    first = experiment_id(client, "e")
    assert experiment_id(client, "e") == first
    client.delete_experiment(first)
    assert experiment_id(client, "e") == first
    assert client.get_experiment(first).artifact_location == artifact_root().as_uri()
    assert sorted(os.listdir(tmp_path)) == [".envace"]


def test_a_damaged_store_is_named(tmp_path: Path) -> None:
    database(tmp_path).parent.mkdir(parents=True)
    database(tmp_path).write_bytes(b"no database" * 500)
    with pytest.raises(TrackingError, match=r"mlflow\.db: cannot be opened .* move it away"):
        open_store(tmp_path)
