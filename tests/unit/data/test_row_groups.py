"""Groups of tasks made by several processes: the same as by one, and no process outlives the one that asked for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from envace.config import Params
from envace.data import row_groups
from envace.data.placing import PlacedRow, place_rows
from envace.data.row_groups import RowGroup, made_groups
from envace.data.sample import World
from envace.data.sample.rows import sample_rows
from envace.data.validation import validate_files
from envace.errors import StageError


@pytest.fixture(scope="module")
def validated(world: World, params: Params, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("groups")
    (folder / "train.json").write_text(json.dumps(sample_rows(world, 40, 0, "train")), encoding="utf-8")
    validate_files({"train": [folder / "train.json"]}, params.validate_data, folder / "kept", {"source": "sample"})
    return folder / "kept"


@pytest.fixture(scope="module")
def placed(validated: Path, params: Params) -> list[PlacedRow]:
    return place_rows(validated, params.prepare_data)


def _groups(validated: Path, placed: list[PlacedRow], size: int = 8) -> list[RowGroup]:
    return [RowGroup(validated, placed[at : at + size], {}) for at in range(0, len(placed), size)]


def _several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "MIN_ROWS_FOR_PROCESSES", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def test_several_processes_make_what_one_makes(
    validated: Path, placed: list[PlacedRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = list(made_groups(_groups(validated, placed), len(placed)))
    _several(monkeypatch)
    together = list(made_groups(_groups(validated, placed), len(placed)))
    assert len(alone) == len(together) == 5
    for one, other in zip(alone, together, strict=True):
        assert (one.first_id, one.last_id, one.tools, one.counts) == (
            other.first_id,
            other.last_id,
            other.tools,
            other.counts,
        )
        assert all(one.batches[name].equals(other.batches[name]) for name in one.batches)


def test_a_worker_that_is_ended_from_outside_is_one_clear_error(
    validated: Path, placed: list[PlacedRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    _several(monkeypatch)
    groups = made_groups(_groups(validated, placed, 2), len(placed))
    next(groups)
    workers = [p for p in psutil.Process().children(recursive=True) if "spawn_main" in " ".join(p.cmdline())]
    assert workers
    for worker in workers:
        worker.kill()
    with pytest.raises(StageError, match="run again"):
        list(groups)


SCRIPT = """
import sys, time
from pathlib import Path
from envace.config import load_params
from envace.data import row_groups
from envace.data.placing import place_rows
if __name__ == "__main__":
    row_groups.MIN_ROWS_FOR_PROCESSES = 0
    row_groups.os.cpu_count = lambda: 2
    validated = Path(sys.argv[1])
    placed = place_rows(validated, load_params(Path(sys.argv[2])).prepare_data)
    groups = [row_groups.RowGroup(validated, [row], {}) for row in placed]
    made = row_groups.made_groups(groups, len(groups))
    next(made)
    print("up", flush=True)
    time.sleep(60)
"""


def test_workers_end_with_a_stage_that_is_killed(validated: Path, tmp_path: Path, project_root: Path) -> None:
    (tmp_path / "stage.py").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "stage.py"), str(validated), str(project_root / "params.yaml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as stage:
        assert stage.stdout is not None and stage.stdout.readline() == "up\n"
        workers = psutil.Process(stage.pid).children(recursive=True)
        assert workers
        stage.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and any(worker.is_running() for worker in workers):
        time.sleep(0.1)
    assert not [worker for worker in workers if worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE]
