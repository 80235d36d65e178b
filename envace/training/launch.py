"""Runs one training on unmodified verl in this process's Ray cluster, and brings its results home."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from envace.config import Params
from envace.errors import ConfigError, DataError, TrainingError
from envace.files import sha256_text, sha256_tree
from envace.rollout.judging import can_score
from envace.training.bring_home import TrainingOutputs, bring_home
from envace.training.checkpoints import discard_after, fingerprint, newest_sealed
from envace.training.cpu_backend import BACKEND_VARIABLE
from envace.training.dataset import write_dataset
from envace.training.lengths import Fit, fit_tasks
from envace.training.other_runs import note_parts, remove_leftovers, remove_run, tell_other_runs
from envace.training.overrides import RunPaths, compose, verl_overrides
from envace.training.preflight import preflight
from envace.training.progress import TrainingProgress
from envace.training.ray_dashboard import no_dashboard
from envace.training.recorder import Recorder
from envace.training.settings import run_settings, write_settings
from envace.types import Task

# Ray starts its workers at nice 15, which makes one update several times slower on a shared machine.
_ENVIRONMENT = {
    "RAY_worker_niceness": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HYDRA_FULL_ERROR": "1",
    "PYTHONWARNINGS": "ignore",
    "VERL_USE_EXTERNAL_MODULES": "envace.training.plugins",  # loud, where verl's entry points are silent
}

# Hides a machine's GPUs from torch in every process, the workers that have Ray's logical GPU included: Ray hands out
# the listed ids, and -1 is one to Ray and none to CUDA. With an empty list Ray would refuse the logical GPU.
_NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1"}

# Ray's switch (named for where it is the default) for a cluster of this machine alone: it then lives on 127.0.0.1, and
# does not find out the machine's own address by way of a public one.
_ONE_MACHINE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def train(params: Params, tasks: Sequence[Task], base_model: Path, state: Path, outputs: TrainingOutputs) -> None:
    """Train the base model on the training split and write policies and reports.

    Continues from the newest sound checkpoint of the same params and inputs. `state` is the folder for checkpoints.
    Raises TrainingError, before anything starts, with all that `preflight` finds; DataError where nothing can be
    trained on; TrainingError where verl fails.
    """
    remove_leftovers(state)
    preflight(params, tasks, base_model, state)
    fit = fit_tasks(tasks, base_model, params.rollout.max_prompt_tokens, params.rollout.role_prompts)
    _tell(fit)
    chosen = {phase: _scorable(params, fit.tasks, phase) for phase in ("train", "validation")}
    if len(chosen["train"]) < params.train_policy.tasks_per_step:
        raise DataError(
            f"{len(chosen['train'])} training tasks fit the prompt and carry what reward.kind {params.reward.kind} "
            f"scores by, and a step needs {params.train_policy.tasks_per_step}: bring tasks with an `outcome` or a "
            "checklist, raise rollout.max_prompt_tokens, or lower train_policy.tasks_per_step"
        )
    parts = _parts(params, chosen, base_model)
    run = (state / fingerprint(parts)).resolve()
    tell_other_runs(state, run, parts)
    note_parts(run, parts)
    recorder = Recorder(run / "records")
    found = newest_sealed(run / "checkpoints")
    done = found[1] if found else 0
    recorder.discard_after(done if found else -1)
    discard_after(run / "checkpoints", done if found else -1)
    if found:
        print(f"resuming after step {done} of {params.train_policy.steps}", flush=True)
    if done < params.train_policy.steps:
        with _ray_folder() as ray_temp:
            paths = _prepare(run, params, chosen, base_model, ray_temp)
            _run_verl(params, paths, found[0] if found else None, recorder, done)
    validated = bool(chosen["validation"])
    more = {"lengths": fit.record()}
    bring_home(params.train_policy, run / "checkpoints", recorder, outputs, validated=validated, more=more)
    remove_run(run)


def _tell(fit: Fit) -> None:
    if fit.too_long:
        longest = max(fit.too_long, key=lambda task: task.prompt_tokens)
        print(
            f"{len(fit.too_long)} of {len(fit.tasks) + len(fit.too_long)} tasks are too long and left out (check 33): "
            f"prompts may have {fit.max_prompt_tokens} tokens, references {fit.max_positions}; the longest prompt is "
            f"{longest.task_id}'s with {longest.prompt_tokens}. reports/training/summary.json lists them all",
            flush=True,
        )


def _scorable(params: Params, tasks: Sequence[Task], phase: str) -> list[Task]:
    return [t for t in tasks if t.split == phase and can_score(params.reward, t)]


def _parts(params: Params, chosen: dict[str, list[Task]], base_model: Path) -> dict[str, Any]:
    """All that the run's steps depend on."""
    sections = ("rollout", "reward", "advantage", "train_policy")
    return {
        "params": {s: getattr(params, s).model_dump(mode="json") for s in sections},
        "tasks": {phase: [t.content_sha256 for t in members] for phase, members in chosen.items()},
        "base_model": sha256_tree(base_model),
    }


def _prepare(run: Path, params: Params, chosen: dict[str, list[Task]], base_model: Path, ray_temp: Path) -> RunPaths:
    paths = RunPaths(
        model=base_model.resolve(),
        train_data=run / "train.parquet",
        validation_data=run / "validation.parquet",
        settings=run / "settings.yaml",
        checkpoints=run / "checkpoints",
        ray_temp=ray_temp,
    )
    write_dataset(paths.train_data, chosen["train"], "train")
    # verl cannot start without validation rows; where the split is empty, one training task stands in
    write_dataset(paths.validation_data, chosen["validation"] or chosen["train"][:1], "validation")
    write_settings(paths.settings, run_settings(params, run / "records"))
    return paths


def _run_verl(params: Params, paths: RunPaths, resume: Path | None, recorder: Recorder, done: int) -> None:
    os.environ.update(environment(params.train_policy.backend))
    print("starting verl (about a minute on two cores)", flush=True)
    progress = TrainingProgress(recorder, params.train_policy.steps, done, params.train_policy.validate_every)
    with _verl_talk_to(paths.ray_temp / "driver.log"):
        import ray
        from ray.exceptions import RayError
        from verl.trainer.main_ppo import TaskRunnerV1, run_ppo
        from verl.trainer.ppo.utils import need_critic, need_reference_policy
        from verl.utils.config import validate_config

        from envace.training.plugins import check_registered

        check_registered()
        config = compose(verl_overrides(params, paths, resume))
        try:
            validate_config(config, need_reference_policy(config), need_critic(config))
        except (AssertionError, ValueError) as error:
            raise ConfigError(f"verl refuses the configuration: {' '.join(str(error).split())[:400]}") from error
    try:
        with progress, _verl_talk_to(paths.ray_temp / "driver.log"), no_dashboard():
            run_ppo(config, TaskRunnerV1)
    except RayError as error:
        kept = Path(tempfile.mkdtemp(prefix="envace-ray-logs-"))
        shutil.copytree(
            paths.ray_temp, kept, dirs_exist_ok=True, symlinks=True, ignore=shutil.ignore_patterns("sockets")
        )
        cause = str(error).strip().splitlines()[-1][:400]
        raise TrainingError(f"verl stopped: {cause}\n  its logs are in {kept}; run again to resume") from error
    finally:
        ray.shutdown()


def environment(backend: str) -> dict[str, str]:
    """The variables of a training, set before verl is loaded. Ray's workers have them from this process."""
    own = _ONE_MACHINE | _NO_GPU if backend == "cpu" else {}
    return {**_ENVIRONMENT, **own, BACKEND_VARIABLE: backend}


@contextmanager
def _verl_talk_to(log: Path) -> Iterator[None]:
    """Send what verl and Ray print in this process (settings, warnings about engines nobody asked for) to a file."""
    with log.open("a") as file, redirect_stdout(file), redirect_stderr(file), warnings.catch_warnings():
        yield


@contextmanager
def _ray_folder() -> Iterator[Path]:
    """A folder for Ray's sockets and logs, removed at the end.

    Its name is short, since socket paths may not exceed 107 bytes, and the same for every run of a project, so that
    what a killed run has left is removed by the next one (the stage's lock lets only one run at a time).
    """
    folder = Path(tempfile.gettempdir()) / f"envace-ray-{sha256_text(str(Path.cwd()))[:8]}"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise TrainingError(f"{folder}: cannot be made for Ray ({error.strerror}); remove it, or set TMPDIR") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
