"""EnvACE's settings inside a verl run: one file in the shape of verl's agent-loop config, read by every plug-in."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from envace.config import AdvantageParams, Params, RewardParams, RolloutParams
from envace.errors import TrainingError
from envace.files import write_text
from envace.params_training import SimulatorParams

AGENT_LOOP = "envace_act_rehearse"
AGENT_LOOP_CLASS = "envace.training.agent_loop.EnvaceAgentLoop"


class RunSettings(BaseModel):
    """What the agent loop, the estimator and the trainer need of params.yaml, and where the run keeps its records."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int
    method: str
    simulator: SimulatorParams | None  # who answers the calls, if not the policy's rehearse role
    rollout: RolloutParams
    validation_rollout: RolloutParams
    reward: RewardParams
    advantage: AdvantageParams
    records: str
    keep_checkpoints: int
    merge_rows: bool  # outputs that continue each other share a row (envace.training.row_merging)


def run_settings(params: Params, records: Path) -> RunSettings:
    """The settings of one training run. Validation samples its acts as inference does."""
    train, rollout = params.train_policy, params.rollout
    simulator = train.simulator if train.method == "grpo" else None
    if simulator:
        rollout = rollout.model_copy(update={"rehearse": simulator.sampling})
    validation = rollout.model_copy(update={"act": train.validation_act})
    return RunSettings(
        seed=train.seed,
        method=train.method,
        simulator=simulator,
        rollout=rollout,
        validation_rollout=validation,
        reward=params.reward,
        advantage=params.advantage,
        records=str(records),
        keep_checkpoints=train.keep_checkpoints,
        # not with two policies, nor with terms of the loss that do not scale with the advantage
        merge_rows=train.method != "per_role" and train.kl_coefficient == 0 and train.entropy_coefficient == 0,
    )


def write_settings(path: Path, settings: RunSettings) -> None:
    """Write the file that `actor_rollout_ref.rollout.agent.agent_loop_config_path` names."""
    loops = [{"name": AGENT_LOOP, "_target_": AGENT_LOOP_CLASS, "settings": settings.model_dump_json()}]
    write_text(path, json.dumps(loops, indent=1))  # JSON is YAML


def read_settings(path: str | None) -> RunSettings:
    """Read them back. Raises TrainingError where the run was not started by this project."""
    if not path or not Path(path).is_file():
        raise TrainingError(f"agent_loop_config_path is {path!r}: start the run with the train_policy stage")
    loops = json.loads(Path(path).read_text(encoding="utf-8"))
    return RunSettings.model_validate_json(loops[0]["settings"])
