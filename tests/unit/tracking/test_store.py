"""The MLflow store: several first users at once, and a damaged one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envace.errors import TrackingError
from envace.tracking.store import artifact_root, database, experiment_id, open_store

# MLflow is imported once and the users are forked, so that they open the store at the same moment
USERS = """
import os, sys
from pathlib import Path
import mlflow.store.tracking.sqlalchemy_store
import mlflow.tracking.client
from envace.tracking.store import open_store

def use():
    client = open_store(Path(sys.argv[1]))
    run = client.create_run(client.get_experiment_by_name("Default").experiment_id)
    client.log_metric(run.info.run_id, "x", 1.0)
    client.set_terminated(run.info.run_id)

users = []
for _ in range(8):
    users.append(os.fork())
    if not users[-1]:
        try:
            use()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
sys.exit(sum(os.waitpid(user, 0)[1] != 0 for user in users))
"""


def test_eight_first_users_at_once_lose_nothing(tmp_path: Path) -> None:
    users = subprocess.run([sys.executable, "-c", USERS, str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert users.returncode == 0, users.stderr
    client = open_store(tmp_path)
    assert [run.data.metrics for run in client.search_runs(["0"])] == [{"x": 1.0}] * 8


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
