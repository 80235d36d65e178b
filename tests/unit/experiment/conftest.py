"""Stages that do in a moment what real ones do in minutes: they write the same files, with figures that are known."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from envace.config import Params
from envace.errors import StageError
from envace.experiment.conduct import conduct
from envace.experiment.plan import Plan
from envace.files import read_json, write_json, write_text

SKILL = {"base": 0.5, "clean": 0.9, "control": 0.52}
GAIN = 0.2


class FakeStages:
    """A stage runner. `ran` lists what it was asked; a stage named in `failing` fails that many times first."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, str]] = []
        self.failing: dict[str, int] = {}
        self.seen_params: list[dict[str, Any]] = []

    def __call__(self, name: str, folder: Path) -> None:
        self.ran.append((name, folder.name))
        params = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
        self.seen_params.append(params)
        if self.failing.get(name, 0) > 0:
            self.failing[name] -= 1
            raise StageError(f"{name} fails as asked")
        getattr(self, name)(folder, params)

    def count(self, name: str) -> int:
        """How often a stage was run."""
        return sum(ran == name for ran, _ in self.ran)

    def fetch_data(self, folder: Path, params: dict[str, Any]) -> None:
        write_text(folder / "data/raw/train.json", json.dumps(params["fetch_data"]))

    def validate_data(self, folder: Path, params: dict[str, Any]) -> None:
        assert (folder / "data/raw/train.json").is_file()

    def prepare_data(self, folder: Path, params: dict[str, Any]) -> None:
        write_text(folder / "data/prepared/tasks.parquet", json.dumps(params["fetch_data"]))

    def build_base_model(self, folder: Path, params: dict[str, Any]) -> None:
        section = params["build_base_model"]
        note = {"seed": section["seed"], "steps": section["clean"]["steps"]}
        for where, name in (("base", "base"), ("references/clean", "clean"), ("references/control", "control")):
            policy(folder / "models" / where, SKILL[name], **note)

    def train_policy(self, folder: Path, params: dict[str, Any]) -> None:
        start = read_json(folder / "models/base/config.json")
        assert (folder / "data/prepared/tasks.parquet").is_file()
        shared = params["advantage"]["baseline"] == "shared"
        gain = GAIN / 2 if shared else GAIN
        for where in ("policy", "trained/last"):
            policy(folder / "models" / where, start["skill"] + gain, seed=params["train_policy"]["seed"], gain=gain)
        steps = params["train_policy"]["steps"]
        lines = [
            {
                "step": s,
                "phase": "validation",
                "validation/reward/mean": round(0.4 + s / 100, 6),
                "validation/reward/success": 0.1,
            }
            | {"validation/rollouts": 44.0}
            for s in (0, steps)
        ]
        write_text(folder / "reports/training/metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        write_json(folder / "reports/training/summary.json", {"steps": steps, "exported": "last"})

    def evaluation_job(self, folder: Path, params: dict[str, Any]) -> None:
        job, seed = read_json(folder / "job.json"), params["evaluate_policy"]["seed"]
        skill = read_json(Path(job["policy"]) / "config.json")["skill"]
        rng = random.Random(seed)  # of the task, not of the policy: what pairing takes out
        ease = {f"t{i}": rng.uniform(-0.4, 0.1) for i in range(job["count"])}
        tasks = {name: round(skill + value, 6) for name, value in ease.items()}
        mean = sum(tasks.values()) / len(tasks)
        figures = {"reward": mean, "success": mean, "rollouts": 8, "unscorable": 0, "rehearsals": 3}
        fidelity = {"count": 9, "parses": 1.0, "exact": 0.9, "key_f1": 1.0, "leaf_f1": 1.0, "error_agreement": 1.0}
        write_json(
            folder / "metrics.json",
            {
                "true": figures | {"malformed_share": None},
                "rehearsed": figures | {"malformed_share": 0.1},
                "fidelity": fidelity | {"error_recall": 0.5, "recorded_errors": 4},
                "by_task": {e: {"reward": tasks, "success": tasks} for e in ("true", "rehearsed")},
            },
        )

    def loss_job(self, folder: Path, params: dict[str, Any]) -> None:
        steps = read_json(Path(read_json(folder / "job.json")["policy"]) / "config.json")["steps"]
        write_json(folder / "loss.json", {"loss": abs(steps - 40) / 100, "tokens": 10, "tasks": 2})


def policy(folder: Path, skill: float, **note: Any) -> None:
    write_json(folder / "config.json", {"skill": skill, **note})


@pytest.fixture
def stages() -> FakeStages:
    """The fake stages, which remember what they did."""
    return FakeStages()


@pytest.fixture
def raw(params: Params) -> dict[str, Any]:
    """The shipped parameters, decoded."""
    return params.model_dump(mode="json")


@pytest.fixture
def make_plan() -> Callable[..., Plan]:
    """Makes a plan of the given arms, two seeds, and few tasks."""

    def make(arms: dict[str, Any] | None = None, **more: Any) -> Plan:
        base = {"title": "T", "question": "Q", "seeds": [0, 1], "evaluation": {"tasks": 20, "samples": 2}}
        return Plan.model_validate({**base, "arms": arms or {"envace": {"label": "as shipped"}}, **more})

    return make


@pytest.fixture
def run(tmp_path: Path, raw: dict[str, Any], stages: FakeStages) -> Callable[..., dict[str, Any]]:
    """Runs a plan on the fake stages in a project folder; gives its record. `said` gets the lines."""

    def go(
        plan: Plan, name: str = "p", arms: list[str] | None = None, seeds: list[int] | None = None, said: Any = None
    ) -> dict[str, Any]:
        say = said.append if said is not None else lambda text: None
        return conduct(name, plan, raw, root=tmp_path, run_stage=stages, say=say, arms=arms or [], seeds=seeds or [])

    return go
