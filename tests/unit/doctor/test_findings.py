"""Every check of the doctor with a seeded fault: it is told, with what to do, and a sound thing is left alone."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from envace.config import Params, parse_params
from envace.doctor.endpoints import endpoints
from envace.doctor.finding import Finding
from envace.doctor.machine import amount_finding, cores_finding, machine
from envace.doctor.project import cache_finding, dvc_lock_finding, git_finding, locks, store_finding
from envace.doctor.services import page_finding
from envace.doctor.software import GPU_PINS, PINS, pins_finding, pins_of, python_finding, seams_finding
from envace.files import write_json
from envace.locks import LOCKS, held

MD5 = "0123456789abcdef0123456789abcdef"


class Page(BaseHTTPRequestHandler):
    """Answers /health alone; /secret asks who you are."""

    def do_GET(self) -> None:
        self.send_response({"/health": 200, "/secret": 401}.get(self.path, 404))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def told(finding: Finding) -> str:
    """Its level; whatever is not ok says what to do."""
    assert bool(finding.todo) == (finding.level != "ok") and finding.says
    return finding.level


def test_a_small_machine_is_told(tmp_path: Path) -> None:
    assert [told(cores_finding(n)) for n in (1, 2, 64)] == ["warning", "ok", "ok"]
    assert [told(amount_finding("disk", b * 1e9, 3e9, 1e9, "free some")) for b in (0.5, 2, 5)] == [
        *("problem", "warning", "ok")
    ]
    assert [f.about for f in machine(tmp_path)] == ["cores", "memory", "disk"]


def test_another_python_and_other_versions_are_told(tmp_path: Path) -> None:
    assert [told(python_finding(v)) for v in ((3, 10), (3, 11), (3, 12))] == ["problem", "ok", "warning"]
    pins = tmp_path / "cpu.txt"
    pins.write_text("# all\ntorch==2.13.0\nverl[vllm]==0.9.1 ; x\nray==2.60.0\n", encoding="utf-8")
    there: dict[str, str | None] = {"torch": "2.13.0+cpu", "verl": "0.9.1", "ray": "2.60.0"}
    assert told(pins_finding(pins, there.get)) == "ok"
    other = pins_finding(pins, {**there, "ray": "2.59.0"}.get)
    assert told(other) == "warning" and "ray 2.59.0 (pinned 2.60.0)" in other.says
    missing = pins_finding(pins, {**there, "verl": None}.get)
    assert told(missing) == "problem" and "not installed: verl" in missing.says
    assert told(pins_finding(tmp_path / "nowhere.txt")) == "problem"


def test_the_pins_are_those_of_the_environment(tmp_path: Path, project_root: Path) -> None:
    beside = Path(sys.executable).parent / "python3.11"
    assert pins_of(sys.executable) == pins_of(str(beside)) == PINS
    link = tmp_path / "bin/python"  # another venv's, of the same binary
    link.parent.mkdir()
    link.symlink_to(Path(sys.executable).resolve())
    assert pins_of(str(link)) == GPU_PINS and (project_root / GPU_PINS).is_file()


def test_a_python_without_our_plugins_is_told(tmp_path: Path) -> None:
    assert told(seams_finding(str(tmp_path / "nowhere"))) == "problem"
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\necho 'TrainingError: verl has not registered: estimator' >&2\nexit 1\n", encoding="utf-8"
    )
    python.chmod(0o755)
    found = seams_finding(str(python))
    assert told(found) == "problem" and "has not registered: estimator" in found.says
    python.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    assert told(seams_finding(str(python))) == "ok"


def with_judge(params: Params, **endpoint: Any) -> Params:
    raw = params.model_dump()
    raw["reward"]["judge"]["kind"] = "llm"
    raw["reward"]["judge"]["endpoint"] |= {"model": "m", **endpoint}
    return parse_params(raw, "params")


def test_an_unset_key_and_a_server_that_is_down_are_told(
    params: Params, port: int, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [told(f) for f in endpoints(params)] == ["ok"]
    up, down = f"http://127.0.0.1:{port}/v1", f"http://127.0.0.1:{free_port}/v1"
    monkeypatch.delenv("DOCTORS_KEY", raising=False)
    found = {f.about: f for f in endpoints(with_judge(params, base_url=up, api_key_env="DOCTORS_KEY"))}
    assert told(found["reward.judge.endpoint.api_key_env"]) == "problem"
    assert told(found["reward.judge.endpoint"]) == "ok"
    monkeypatch.setenv("DOCTORS_KEY", "hush-this-is-it")
    lines = list(endpoints(with_judge(params, base_url=down, api_key_env="DOCTORS_KEY")))
    assert [told(f) for f in lines] == ["ok", "problem"] and "hush" not in str(lines)
    away = list(endpoints(with_judge(params, base_url="http://169.254.169.254/v1")))
    assert [told(f) for f in away] == ["problem"] and "does not answer" not in away[0].says
    raw = with_judge(params, base_url=down).model_dump()
    raw["reward"]["judge"]["kind"] = "rule"
    assert [told(f) for f in endpoints(parse_params(raw, ""))] == ["warning"], "nothing asks it"


def test_a_page_is_told_from_another_program(port: int, free_port: int) -> None:
    assert told(page_finding("MLflow", free_port, "/health")) == "ok"
    assert (
        "is up" in page_finding("MLflow", port, "/health").says and "is up" in page_finding("P", port, "/secret").says
    )
    assert told(page_finding("MLflow", port, "/something/else")) == "warning"


def test_git_without_a_commit_and_with_changes(tmp_path: Path) -> None:
    assert told(git_finding(tmp_path)) == "warning"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    (tmp_path / "file").write_text("1", encoding="utf-8")
    for command in (["init", "-q"], ["add", "file"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    assert told(git_finding(tmp_path)) == "ok"
    (tmp_path / "file").write_text("2", encoding="utf-8")
    assert told(git_finding(tmp_path)) == "warning"


def test_outputs_that_are_not_in_the_cache(tmp_path: Path) -> None:
    assert told(cache_finding(tmp_path)) == "problem"
    cached = tmp_path / ".dvc/cache/files/md5" / MD5[:2] / MD5[2:]
    cached.parent.mkdir(parents=True)
    assert told(cache_finding(tmp_path)) == "ok"
    lock = {"schema": "2.0", "stages": {"a": {"cmd": "c", "outs": [{"path": "a.out", "md5": MD5, "size": 1}]}}}
    (tmp_path / "dvc.lock").write_text(yaml.safe_dump(lock), encoding="utf-8")
    assert told(cache_finding(tmp_path)) == "warning" and "a.out" in cache_finding(tmp_path).says
    cached.write_text("x", encoding="utf-8")
    assert told(cache_finding(tmp_path)) == "ok"
    (tmp_path / ".dvc/config.local").write_text("[cache]\n    dir = ../elsewhere\n", encoding="utf-8")
    assert told(cache_finding(tmp_path)) == "warning", "a shared cache is looked at where it is"
    (tmp_path / ".dvc/config.local").write_text(f'[cache]\n    dir = "{tmp_path}/.dvc/cache"\n', encoding="utf-8")
    assert told(cache_finding(tmp_path)) == "ok", "DVC writes quotes around some paths"
    (tmp_path / "dvc.lock").write_text("<<<<<<< ours\n", encoding="utf-8")
    assert told(cache_finding(tmp_path)) == "problem"


def test_a_wiped_or_broken_store(tmp_path: Path) -> None:
    assert told(store_finding(tmp_path)) == "ok"
    write_json(tmp_path / ".envace/registration.json", {"model_name": "m", "version": "2"})
    assert told(store_finding(tmp_path)) == "warning"
    database = tmp_path / ".envace/mlflow/mlflow.db"
    database.parent.mkdir()
    database.write_bytes(b"no database")
    assert told(store_finding(tmp_path)) == "problem"
    database.unlink()
    with sqlite3.connect(database) as store:
        store.execute("CREATE TABLE model_versions (name TEXT, version INTEGER)")
    assert told(store_finding(tmp_path)) == "warning"
    with sqlite3.connect(database) as store:
        store.execute("INSERT INTO model_versions VALUES ('m', 2)")
    assert told(store_finding(tmp_path)) == "ok"
    (tmp_path / ".envace/registration.json").write_text("{", encoding="utf-8")
    assert told(store_finding(tmp_path)) == "problem"


def test_locks_that_are_held_and_left(tmp_path: Path) -> None:
    assert [told(f) for f in locks(tmp_path)] == ["ok", "ok"]
    with held("train_policy", what="the stage", folder=tmp_path / LOCKS):
        busy = next(locks(tmp_path))
        assert told(busy) == "warning" and f"train_policy (process {os.getpid()})" in busy.says
    assert [told(f) for f in locks(tmp_path)] == ["ok", "ok"], "the file that is left holds nothing"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    note = tmp_path / "rwlock"
    for pid, words in ((gone.pid, "left by killed"), (os.getpid(), "dvc runs here")):
        note.write_text(json.dumps({"a.out": {"write": {"pid": pid, "cmd": "dvc repro"}}}), encoding="utf-8")
        assert told(dvc_lock_finding(note)) == "warning" and words in dvc_lock_finding(note).says
    note.write_text("{", encoding="utf-8")
    assert told(dvc_lock_finding(note)) == "problem"
