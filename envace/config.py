"""The typed mirror of params.yaml: every key and its bounds. Unknown keys are refused, all faults are told at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from envace.errors import ConfigError

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]


class Section(BaseModel):
    """A part of params.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SampleParams(Section):
    seed: int
    train_tasks: Count
    heldout_tasks: Count
    hard_tasks: Count
    faulty_share: Share


class FetchDataParams(Section):
    source: Literal["sample", "file"]
    train_path: str | None
    heldout_path: str | None
    licence: str | None
    sample: SampleParams

    @model_validator(mode="after")
    def _needs_a_path(self) -> FetchDataParams:
        if self.source == "file" and not self.train_path:
            raise ValueError("source is 'file', so train_path must name a raw file")
        return self


class ValidateDataParams(Section):
    max_rejected_share: Share
    min_rows_for_shares: Count
    max_error_result_share: Share
    max_row_bytes: Count
    max_message_bytes: Count


class PrepareDataParams(Section):
    validation_share: Share
    heldout_share: Share
    salt: str


class ArchitectureParams(Section):
    hidden_size: Count
    layers: Count
    intermediate_size: Count
    heads: Count
    kv_heads: Count
    head_dim: Count
    vocabulary: Annotated[int, Field(ge=300)]
    max_positions: Count


class CleanParams(Section):
    steps: Annotated[int, Field(ge=0)]
    learning_rate: Positive
    batch_tokens: Count


class FaultyParams(CleanParams):
    act_random: Share
    act_dominant: Share
    result: Share


class BuildBaseModelParams(Section):
    source: Literal["tiny", "folder"]
    path: str | None
    seed: int
    architecture: ArchitectureParams
    demonstrations: Count
    clean: CleanParams
    faulty: FaultyParams

    @model_validator(mode="after")
    def _needs_a_path(self) -> BuildBaseModelParams:
        if self.source == "folder" and not self.path:
            raise ValueError("source is 'folder', so path must name a checkpoint folder")
        return self


class SamplingParams(Section):
    """How one role samples. Temperature 0 is greedy."""

    temperature: Annotated[float, Field(ge=0)]
    top_p: Annotated[float, Field(gt=0, le=1)]


class RolloutParams(Section):
    """Switches and limits of the act–rehearse loop (method, section 2)."""

    validation: Literal["code", "none"]
    grounding: Literal["none"]
    parallel_calls: Literal["sequential"]
    keep_reasoning: Literal["current_turn"]
    max_outputs: Count
    max_prompt_tokens: Count
    max_act_tokens: Count
    max_rehearse_tokens: Count
    max_parallel_calls: Count
    max_invalid_calls: Count
    act: SamplingParams
    rehearse: SamplingParams


class RewardWeights(Section):
    """Shares of a turn's verifiable score. In a turn without calls: `no_call` for making none, the rest for facts."""

    calls: Share
    only: Share
    facts: Share
    no_call: Share

    @model_validator(mode="after")
    def _sums_to_one(self) -> RewardWeights:
        if abs(self.calls + self.only + self.facts - 1) > 1e-9:
            raise ValueError("calls + only + facts must be 1")
        return self


class RewardParams(Section):
    kind: Literal["verifiable"]
    weights: RewardWeights


class AdvantageParams(Section):
    """Role-wise GRPO (method, section 4)."""

    weighting: Literal["output", "rollout"]
    normalize_std: bool
    std_floor: Positive


class TrainPolicyParams(Section):
    method: Literal["envace"]
    backend: Literal["cpu", "cuda"]
    seed: int
    steps: Count
    tasks_per_step: Count
    rollouts_per_task: Annotated[int, Field(ge=2)]
    learning_rate: Positive
    warmup_steps: Annotated[int, Field(ge=0)]
    weight_decay: Annotated[float, Field(ge=0)]
    clip_ratio: Positive
    grad_clip: Positive
    kl_coefficient: Annotated[float, Field(ge=0)]
    entropy_coefficient: Annotated[float, Field(ge=0)]
    validate_every: Count
    validation_act: SamplingParams
    checkpoint_every: Count
    keep_checkpoints: Annotated[int, Field(ge=2)]
    micro_batch_rows: Count


class EvaluatePolicyParams(Section):
    seed: int
    repeats: Count
    act: SamplingParams
    rehearse: SamplingParams


class RegisterModelParams(Section):
    experiment: str
    model_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
    reward_margin: float
    success_margin: float


class WriteReportParams(Section):
    title: str


class Params(Section):
    """All of params.yaml."""

    profile: str
    fetch_data: FetchDataParams
    validate_data: ValidateDataParams
    prepare_data: PrepareDataParams
    build_base_model: BuildBaseModelParams
    rollout: RolloutParams
    reward: RewardParams
    advantage: AdvantageParams
    train_policy: TrainPolicyParams
    evaluate_policy: EvaluatePolicyParams
    register_model: RegisterModelParams
    write_report: WriteReportParams


def parse_params(raw: Any, where: str) -> Params:
    """Check a decoded params file. Raises ConfigError with one line for every fault."""
    if not isinstance(raw, dict):
        raise ConfigError(f"{where}: expected a mapping of sections, found {type(raw).__name__}")
    try:
        return Params.model_validate(raw)
    except ValidationError as error:
        lines = [_explain(e) for e in error.errors()]
        raise ConfigError(f"{where}: {len(lines)} wrong key(s)\n" + "\n".join(f"  - {x}" for x in lines)) from None


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and check a params file. Raises ConfigError for a missing, unreadable or wrong one."""
    import yaml

    if not path.is_file():
        raise ConfigError(
            f"{path}: no such file; run from the project's root, or restore it with `git checkout {path}`"
        )
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not readable as YAML: {' '.join(str(error).split())}") from None
    return parse_params(raw, str(path))


def _explain(error: Any) -> str:
    key = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{key}: unknown key; remove it or correct its spelling"
    if error["type"] == "missing":
        return f"{key}: missing; add it"
    return f"{key}: {error['msg']} (found {error['input']!r:.80})"
