"""What fills the folder of each job: the pipeline's own stages, each with a params.yaml of its own."""

from __future__ import annotations

import os
import shutil
from contextlib import nullcontext
from pathlib import Path

from envace.config import Params
from envace.errors import StageError
from envace.experiment.jobs import Say, StageRunner, require
from envace.experiment.merging import with_simulator
from envace.experiment.plan import EvaluationPlan
from envace.experiment.project_base import project_base
from envace.experiment.simulator import world_simulator
from envace.files import read_json, write_json, write_text

TASKS = Path("data/prepared/tasks.parquet")
JOB = "job.json"
TRIES = 3


class Work:
    """Runs stages by `run_stage`."""

    def __init__(self, run_stage: StageRunner, say: Say, root: Path) -> None:
        self._run_stage, self._say, self._root = run_stage, say, root

    def data(self, folder: Path, params: Params) -> None:
        """data/prepared, by the three data stages."""
        _write_params(folder, params)
        for stage in ("fetch_data", "validate_data", "prepare_data"):
            self._run_stage(stage, folder)
        require(folder / TASKS, "prepare_data")

    def base(self, folder: Path, params: Params) -> None:
        """models/base and models/references: a copy of the project's own where they are the same, else built."""
        _write_params(folder, params)
        own = project_base(self._root, params)
        if own is not None:
            self._say("  copied from the project's own models, which dvc.lock says are the same")
            for source in own:
                shutil.copytree(source, folder / "models" / source.name, dirs_exist_ok=True)
            return
        self._run_stage("build_base_model", folder)

    def training(self, folder: Path, params: Params, start: Path, data: Path, simulator: str | None) -> None:
        """models/policy, models/trained and reports/training; goes on from the checkpoints that are there."""
        _link(folder / "models/base", require(start, "the base policy"))
        _link(folder / "data/prepared", require(data / TASKS, "prepare_data").parent)
        # the address is part of the params that a training resumes by: the same port again, where it is free
        note = folder / "simulator.json"
        port = read_json(note)["port"] if note.is_file() else 0
        serving = world_simulator(params.fetch_data.sample.seed, port) if simulator else nullcontext()
        with serving as server:
            if server is not None:
                write_json(note, {"port": server.server_port})
                params = with_simulator(params, server.base_url)
            _write_params(folder, params)
            self._train(folder)
        require(folder / "models/policy/config.json", "train_policy")

    def _train(self, folder: Path) -> None:
        """The stage, again where it fails: Ray gives a loaded machine 30 s to start, and the stage resumes."""
        for left in reversed(range(TRIES)):
            try:
                return self._run_stage("train_policy", folder)
            except StageError as error:
                if not left:
                    raise
                self._say(f"  {str(error).splitlines()[-1]}\n  it is tried again ({left} of {TRIES} tries left)")

    def evaluation(
        self, folder: Path, params: Params, policy: Path, exports: Path | None, data: Path, plan: EvaluationPlan
    ) -> None:
        """metrics.json and rollouts.parquet of one policy, or of two of which each has a role (`exports` says)."""
        _write_params(folder, params)
        job = {"policy": str(require(policy, "its training")), "tasks": str(data / TASKS)}
        job |= {"exports": str(exports)} if exports else {}
        write_json(folder / JOB, {**job, "count": plan.tasks, "split": plan.split})
        self._run_stage("evaluation_job", folder)
        require(folder / "metrics.json", "the evaluation")

    def loss(self, folder: Path, params: Params, policy: Path, data: Path) -> None:
        """loss.json: how likely the policy finds the references of the validation tasks."""
        _write_params(folder, params)
        write_json(folder / JOB, {"policy": str(require(policy, "the base policy")), "tasks": str(data / TASKS)})
        self._run_stage("loss_job", folder)
        require(folder / "loss.json", "the validation loss")


def _write_params(folder: Path, params: Params) -> None:
    import yaml

    text = yaml.safe_dump(params.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    write_text(folder / "params.yaml", text)


def _link(link: Path, target: Path) -> None:
    """A relative link, so that the state folder may be moved as a whole."""
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_symlink():
        link.unlink()
    elif link.is_dir():
        shutil.rmtree(link)
    link.symlink_to(os.path.relpath(target.resolve(), link.parent.resolve()), target_is_directory=True)
