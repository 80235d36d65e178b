"""The stages run once in a project whose network is blocked and whose judge gives away the secret that it is sent."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from envace.config import Params, parse_params
from envace.files import write_json

OWN = {"localhost", "127.0.0.1", "::1", "0.0.0.0", "", socket.gethostname(), socket.gethostname().split(".")[0]}
GUARD = Path(__file__).with_name("guard")
SECRET, VARIABLE = "canary-7c1fd0a9e35b4d22", "ENVACE_TEST_CANARY"
LISTED = ("HOME", "LANG", "PATH", "TMPDIR", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Guarded:
    """What is left of the run: exit codes and outputs by stage, look-ups, command lines, keys that the judge got."""

    project: Path
    codes: dict[str, int]
    outputs: dict[str, str]
    look_ups: list[str]
    commands: set[str]
    keys_received: list[str]


def foreign(lines: list[str]) -> list[str]:
    """What a guarded run asked for that is not this machine."""
    return [line for line in lines if line.split(" ")[0] == "address" or line.partition(" ")[2] not in OWN]


class Tactless(BaseHTTPRequestHandler):
    """Refuses every request and repeats its key in the answer, in a header and in the body."""

    def do_POST(self) -> None:
        key = self.headers.get("authorization", "")
        self.server.keys.append(key)  # type: ignore[attr-defined]
        body = json.dumps({"error": {"message": f"the key {key} is not known here"}}).encode()
        self.send_response(401, f"no {key}")
        self.send_header("x-you-sent", key)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="session")
def tactless() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Tactless)
    server.keys = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def guarded_params(params: Params, port: int) -> dict[str, Any]:
    """A few tasks, scored by a judge at that port."""
    raw = params.model_dump()
    raw["fetch_data"]["sample"] |= {"train_tasks": 12, "heldout_tasks": 3, "hard_tasks": 1, "faulty_share": 0.0}
    raw["rollout"] |= {"max_act_tokens": 8, "max_rehearse_tokens": 8, "max_outputs": 2}
    raw["reward"] |= {"kind": "checklist"}
    raw["reward"]["judge"]["kind"] = "llm"
    raw["reward"]["judge"]["endpoint"] |= {
        **{"base_url": f"http://127.0.0.1:{port}/v1", "model": "judge", "api_key_env": VARIABLE},
        **{"retries": 0, "timeout_s": 5, "deadline_s": 10},
    }
    raw["evaluate_policy"]["repeats"] = 1
    parse_params(raw, "the test's parameters")
    return raw


def environment(log: Path) -> dict[str, str]:
    """The variables of a stage under guard. The secret is in them, and nowhere else."""
    kept = {name: os.environ[name] for name in LISTED if name in os.environ}
    here = os.pathsep.join([str(GUARD), str(GUARD.parents[2])])
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONPATH": here, "ENVACE_GUARD_LOG": str(log), VARIABLE: SECRET}


@pytest.fixture(scope="session")
def guarded(
    params: Params, tiny_policy: Path, tactless: Any, tmp_path_factory: pytest.TempPathFactory, project_maker: Any
) -> Guarded:
    """The stages up to the report; train_policy is refused by its pre-flight check, since the judge does not answer."""
    project: Path = project_maker(tmp_path_factory.mktemp("guarded"))
    log = project.with_name("look-ups.log")
    (project / "params.yaml").write_text(yaml.safe_dump(guarded_params(params, tactless.server_port)), encoding="utf-8")
    for name in ("base", "trained/last", "trained/best"):
        shutil.copytree(tiny_policy, project / "models" / name, dirs_exist_ok=True)
    write_json(project / "models/references/index.json", {"policies": []})
    codes, outputs, commands = {}, {}, set()
    stages = ("fetch_data", "validate_data", "prepare_data", "train_policy", "evaluate_policy", "register_model")
    for stage in (*stages, "write_report"):
        code, said = watched([sys.executable, "-m", f"pipeline_steps.{stage}"], project, environment(log), commands)
        codes[stage], outputs[stage] = code, said
    (project / "dvc.yaml").write_text(_graph(), encoding="utf-8")
    for command in (["init", "--no-scm", "--quiet"], ["repro"]):
        code, said = watched([sys.executable, "-m", "dvc", *command], project, environment(log), commands)
        codes[f"dvc {command[0]}"], outputs[f"dvc {command[0]}"] = code, said
    return Guarded(project, codes, outputs, log.read_text("utf-8").splitlines(), commands, list(tactless.keys))


def watched(command: list[str], project: Path, variables: dict[str, str], commands: set[str]) -> tuple[int, str]:
    """Run a command to its end. All command lines of it and of what it starts are added to `commands`."""
    process = subprocess.Popen(
        command, cwd=project, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines: list[str] = []
    assert process.stdout is not None
    reader = threading.Thread(target=lines.extend, args=(process.stdout,))
    reader.start()
    while process.poll() is None:
        for one in _family(process.pid):
            commands.add(" ".join(one))
        time.sleep(0.3)
    reader.join()
    return process.returncode, "".join(lines)


def _family(pid: int) -> Iterator[list[str]]:
    try:
        here = psutil.Process(pid)
        for process in (here, *here.children(recursive=True)):
            yield process.cmdline()
    except psutil.Error:
        return


def _graph() -> str:
    """One stage by DVC, whose lock file then holds the sections that name the variable."""
    stage = {"cmd": f'"{sys.executable}" -m pipeline_steps.fetch_data', "params": ["fetch_data", "reward"]}
    return yaml.safe_dump({"stages": {"fetch_data": {**stage, "outs": ["data/raw"]}}})


@pytest.fixture(scope="session")
def project_maker(tmp_path_factory: pytest.TempPathFactory, tiny_policy: Path) -> Callable[[Path], Path]:
    """Makes a project whose training has ended, in a folder."""
    from envace.rollout.records import write_rollouts
    from tests.conftest import training_rows

    def make(folder: Path) -> Path:
        project = folder / "project"
        shutil.copytree(tiny_policy, project / "models/policy")
        write_rollouts(project / "reports/training/rollouts.parquet", training_rows(), ("step", "phase"))
        curve = "".join(json.dumps({"step": s, "phase": "train", "reward/mean": 0.2 * s}) + "\n" for s in (1, 2, 3))
        (project / "reports/training/metrics.jsonl").write_text(curve, encoding="utf-8")
        write_json(project / "reports/training/summary.json", {"steps": 3})
        return project

    return make
