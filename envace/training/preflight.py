"""Everything that can be known to go wrong with a training, told at once and before anything is started."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from envace.config import EndpointParams, Params, RewardParams, TrainPolicyParams
from envace.errors import CheckpointError, DataError, EnvaceError, TrainingError
from envace.missing import INSTALL
from envace.rewards.kind import reward_kind, rubric_of
from envace.rewards.rule_judge import decide
from envace.training.model_folder import model_faults, parameter_count
from envace.training.overrides import params_faults
from envace.types import Task, TurnRecord, Verdict

VERL = "0.9.1"
_BESIDE_VERL = ("ray", "tensordict", "TransferQueue")  # verl does not ask for all of them itself
_CHECKPOINT_BYTES = 16  # a parameter: weights and two moments of Adam in fp32, and the exported weights
_EXPORT_BYTES = 4
_EXPORTS = 3  # best, last, and the copy of one of them in models/policy


def preflight(params: Params, tasks: Sequence[Task], model: Path, state: Path, say: Any = print) -> None:
    """Check params, software, GPUs, model folder, sizes, disk, endpoints and rewards.

    Raises TrainingError that lists every fault, those that belong to params.yaml included.

    `state` is the folder that will hold the checkpoints. `say` gets what is worth knowing but no fault.
    """
    faults = [
        *params_faults(params),
        *verl_faults(),
        *gpu_faults(params.train_policy),
        *model_faults(model, params.rollout),
        *batch_faults(params.train_policy),
        *disk_faults(params.train_policy, model, state),
        *endpoint_faults(endpoints_in_use(params, tasks)),
        *judge_faults(params.reward, tasks, say),
    ]
    if faults:
        listed = "\n".join(f"  - {fault}" for fault in faults)
        raise TrainingError(f"training was not started, for {len(faults)} reason(s):\n{listed}")


def verl_faults() -> Iterator[str]:
    """Whether verl is there in the one version that this project is made for."""
    found = _version("verl")
    if found is None:
        yield f"verl is not installed; {INSTALL} installs verl {VERL} with what it needs"
    elif found != VERL:
        yield f"verl {found} is installed, and this project is made for {VERL}; {INSTALL} installs it"
    missing = [name for name in _BESIDE_VERL if _version(name) is None]
    if missing:
        yield f"{', '.join(missing)}: not installed, and verl needs it; {INSTALL} installs it"


def gpu_faults(train: TrainPolicyParams) -> Iterator[str]:
    """Whether what backend cuda needs of this machine is there: its share of the GPUs, and vLLM for the rollouts."""
    if train.backend != "cuda":
        return
    found, asked = _gpus(), train.hardware.gpus_per_node
    if found < asked:
        yield (
            f"train_policy.backend is cuda with {asked} GPU(s) a node (hardware.gpus_per_node), and nvidia-smi lists "
            f"{found or 'none'} on this machine; train where they are, lower hardware.gpus_per_node, or set backend to "
            "cpu"
        )
    if _version("vllm") is None:
        yield (
            "vllm is not installed, and train_policy.backend cuda generates rollouts with it; install "
            "constraints/gpu.txt (docs/operations.md), or set backend to cpu"
        )


def batch_faults(train: TrainPolicyParams) -> Iterator[str]:
    """Whether the GPUs can share a step's rollouts equally. The CPU backend fills up its micro-batches itself."""
    gpus = train.hardware.nodes * train.hardware.gpus_per_node if train.backend == "cuda" else 1
    rollouts = train.tasks_per_step * train.rollouts_per_task
    if rollouts % gpus:
        yield (
            f"train_policy.tasks_per_step {train.tasks_per_step} x rollouts_per_task {train.rollouts_per_task} make "
            f"{rollouts} rollouts a step, which {gpus} GPUs (hardware.nodes x gpus_per_node) cannot share equally; "
            f"make it a multiple of {gpus}"
        )


def disk_faults(train: TrainPolicyParams, model: Path, state: Path) -> Iterator[str]:
    """Whether the checkpoints fit: those that are kept, the best one, the one being written, and what is exported."""
    try:
        parameters = parameter_count(model) * (2 if train.method == "per_role" else 1)
    except CheckpointError:
        return  # told with the model folder
    checkpoints = train.keep_checkpoints + 2
    needed = parameters * (_CHECKPOINT_BYTES * checkpoints + _EXPORT_BYTES * _EXPORTS)
    there = sum(p.stat().st_size for p in state.rglob("*") if p.is_file()) if state.is_dir() else 0
    place = next(p for p in (state, *state.resolve().parents) if p.is_dir())
    free = shutil.disk_usage(place).free
    if needed > free + there:
        yield (
            f"{place}: {_gigabytes(free)} free, and the checkpoints may need {_gigabytes(needed)} "
            f"({checkpoints} of {_gigabytes(parameters * _CHECKPOINT_BYTES)} each, and {_EXPORTS} exported policies); "
            "free some space, or lower train_policy.keep_checkpoints"
        )


def endpoints_in_use(params: Params, tasks: Iterable[Task]) -> dict[str, EndpointParams]:
    """The endpoints that this training will ask, by their key in params.yaml."""
    train, found = params.train_policy, {}
    if params.reward.judge.kind != "rule" and any(_is_checklist(params.reward, task) for task in tasks):
        found["reward.judge.endpoint"] = params.reward.judge.endpoint
    if train.method == "grpo":
        found["train_policy.simulator.endpoint"] = train.simulator.endpoint
    return found


def endpoint_faults(endpoints: dict[str, EndpointParams]) -> list[str]:
    """One short request to each endpoint, side by side; the errors of those that do not answer it."""

    async def ask_all() -> list[str | None]:
        return list(await asyncio.gather(*(_ask(key, endpoint) for key, endpoint in endpoints.items())))

    return [fault for fault in asyncio.run(ask_all()) if fault] if endpoints else []


async def _ask(key: str, params: EndpointParams) -> str | None:
    from envace.endpoints.client import ChatClient

    # an endpoint that hangs is known after two tries
    hasty = {"retries": min(1, params.retries), "deadline_s": min(params.deadline_s, 2 * params.timeout_s + 2)}
    try:
        client = ChatClient(params.model_copy(update=hasty))
        try:
            await client.chat([{"role": "user", "content": "Answer with: yes"}], max_tokens=16, temperature=0.0)
        finally:
            await client.close()
    except EnvaceError as error:
        return f"{key}: {error}; start the server, or correct the section"
    return None


def judge_faults(params: RewardParams, tasks: Iterable[Task], say: Any = print) -> Iterator[str]:
    """Whether a judge that is code alone can decide anything, where checklists are what tasks are scored by."""
    training = [task for task in tasks if task.split == "train"]
    scored = [task for task in training if _is_checklist(params, task)]
    if params.judge.kind != "rule" or not scored:
        return
    verdicts = [
        decide(task, criterion, TurnRecord(criterion.turn_index, "")) is not Verdict.UNKNOWN
        for task in scored
        for criterion in rubric_of(task, params.variant).criteria
    ]
    told = (
        f"reward.judge.kind is rule, and code can decide {sum(verdicts)} of the {len(verdicts)} criteria of "
        f"{len(scored)} training tasks with a checklist; the others stay unknown, and rollouts that depend on them "
        "have no reward"
    )
    others = any(task.outcome is not None for task in training) and params.kind != "checklist"
    if not any(verdicts) and not others:
        yield f"{told}: nothing would be learned. Set reward.judge.kind to llm or hybrid, with an endpoint"
    elif 2 * sum(verdicts) < len(verdicts):
        say(f"{told} (reward.judge.kind: hybrid asks an endpoint about them)")


def _is_checklist(params: RewardParams, task: Task) -> bool:
    try:
        return reward_kind(params, task) == "checklist"
    except DataError:
        return False  # left out of the training


def _gpus() -> int:
    """GPUs that nvidia-smi lists; 0 where it is not there or fails."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return 0
    try:
        listed = subprocess.run([command, "-L"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
