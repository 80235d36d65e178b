"""The typed mirror of params.yaml: every key and its bounds. Unknown keys are refused, all faults are told at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from envace.errors import ConfigError
from envace.params_basis import MAY_BE_SECRET, Count, Positive, SamplingParams, Section, Share
from envace.params_basis import EndpointParams as EndpointParams
from envace.params_sample import SampleParams as SampleParams
from envace.params_training import TrainPolicyParams as TrainPolicyParams
from envace.profiles import unfilled


class HubParams(Section):
    """A data set in a Hugging Face repository. `revision` is a commit, so that the same run reads the same bytes."""

    repository: str | None
    type: Literal["dataset", "model"]
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None
    train_files: str
    heldout_files: str | None
    licence: str | None


class FetchDataParams(Section):
    source: Literal["sample", "file", "hub"]
    train_path: str | None
    heldout_path: str | None
    licence: str | None
    hub: HubParams
    sample: SampleParams

    @model_validator(mode="after")
    def _needs_a_place(self) -> FetchDataParams:
        if self.source == "file" and not self.train_path:
            raise ValueError("source is 'file', so train_path must name a raw file")
        missing = [key for key in ("repository", "revision", "licence") if not getattr(self.hub, key)]
        if self.source == "hub" and missing:
            raise ValueError(f"source is 'hub', so hub.{', hub.'.join(missing)} must be given")
        return self


class ValidateDataParams(Section):
    """Bounds of the contract (docs/data.md). Sizes are bytes of UTF-8; `max_drift` is relative."""

    min_rows: Count
    max_rows: Count
    max_rejected_share: Share
    min_rows_for_shares: Count
    max_error_result_share: Share
    max_unlocated_share: Share
    max_row_bytes: Count
    max_message_bytes: Count
    max_tools: Count
    max_items: Count
    weight_tolerance: Share
    weight_repairable: Share
    max_prompt_tokens: Count
    max_reference_tokens: Count
    bytes_per_token: Positive
    max_drift: Positive
    licences: list[str]

    @model_validator(mode="after")
    def _in_order(self) -> ValidateDataParams:
        if self.min_rows > self.max_rows:
            raise ValueError("min_rows must not be above max_rows")
        if self.weight_tolerance > self.weight_repairable:
            raise ValueError("weight_tolerance must not be above weight_repairable")
        return self


class PrepareDataParams(Section):
    validation_share: Share
    heldout_share: Share
    salt: str
    max_share_error: Share
    min_rows_for_share_error: Count

    @model_validator(mode="after")
    def _leaves_some_to_train_on(self) -> PrepareDataParams:
        if self.validation_share + self.heldout_share >= 1:
            raise ValueError("validation_share + heldout_share must leave a part to train on")
        return self


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


class ModelHubParams(Section):
    """A model in a Hugging Face repository, at a commit."""

    repository: str | None
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None


class BuildBaseModelParams(Section):
    source: Literal["tiny", "folder", "hub"]
    path: str | None
    hub: ModelHubParams
    seed: int
    architecture: ArchitectureParams
    demonstrations: Count
    clean: CleanParams
    faulty: FaultyParams

    @model_validator(mode="after")
    def _needs_a_path(self) -> BuildBaseModelParams:
        if self.source == "folder" and not self.path:
            raise ValueError("source is 'folder', so path must name a checkpoint folder")
        missing = [key for key in ("repository", "revision") if not getattr(self.hub, key)]
        if self.source == "hub" and missing:
            raise ValueError(f"source is 'hub', so hub.{' and hub.'.join(missing)} must be given")
        return self


class RolloutParams(Section):
    """Switches and limits of the act–rehearse loop (method, section 2)."""

    validation: Literal["code", "none"]
    grounding: Literal["none", "past", "reference"]
    parallel_calls: Literal["sequential", "concurrent"]
    keep_reasoning: Literal["all", "current_turn"]
    role_prompts: Literal["header", "instructions"]
    deadline_s: Positive | None
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


class JudgeParams(Section):
    """Who decides a checklist's criteria (method, section 3)."""

    kind: Literal["rule", "llm", "hybrid"]
    endpoint: EndpointParams
    temperature: Annotated[float, Field(ge=0)]
    max_tokens: Count
    max_transcript_chars: Annotated[int, Field(ge=1000)]

    @model_validator(mode="after")
    def _needs_an_endpoint(self) -> JudgeParams:
        if self.kind != "rule" and not (self.endpoint.base_url and self.endpoint.model):
            raise ValueError(f"kind is {self.kind!r}, so endpoint.base_url and endpoint.model must be given")
        return self


class RewardParams(Section):
    """What turns a rollout into a number (method, section 3). `auto` takes a task's outcome, else its checklist."""

    kind: Literal["auto", "checklist", "verifiable"]
    weights: RewardWeights
    variant: Annotated[int, Field(ge=0)]
    dependencies: Literal["ignore", "gate"]
    judge: JudgeParams


class AdvantageParams(Section):
    """Role-wise GRPO (method, section 4). `baseline` shared: one for the outputs of both roles, to compare with."""

    baseline: Literal["role", "shared"]
    weighting: Literal["output", "rollout"]
    normalize_std: bool
    std_floor: Positive


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
    """Check a decoded params file. Raises ConfigError with one line for every fault, or for every value to fill in."""
    if not isinstance(raw, dict):
        raise ConfigError(f"{where}: expected a mapping of sections, found {type(raw).__name__}")
    if open_values := unfilled(raw):
        lines = [f"  - {key}: {wanted}" for key, wanted in open_values.items()]
        raise ConfigError(f"{where}: {len(lines)} value(s) to fill in\n" + "\n".join(lines))
    try:
        return Params.model_validate(raw)
    except ValidationError as error:
        lines = [_explain(e) for e in error.errors()]
        raise ConfigError(f"{where}: {len(lines)} wrong key(s)\n" + "\n".join(f"  - {x}" for x in lines)) from None


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and check a params file. Raises ConfigError for a missing, unreadable or wrong one."""
    from envace.strict_yaml import NotPlainYamlError, parse_plain_yaml

    if not path.is_file():
        raise ConfigError(
            f"{path}: no such file; run from the project's root, or restore it with `git checkout {path}`"
        )
    try:
        raw = parse_plain_yaml(path.read_text(encoding="utf-8"))
    except (NotPlainYamlError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path}: not readable as YAML: {error}") from None
    return parse_params(raw, str(path))


def _explain(error: Any) -> str:
    key = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{key}: unknown key; remove it or correct its spelling"
    if error["type"] == "missing":
        return f"{key}: missing; add it"
    # a rule about a whole section: its content would say nothing
    if isinstance(error["input"], dict) or set(MAY_BE_SECRET) & set(error["loc"]):
        return f"{key}: {error['msg'].removeprefix('Value error, ')}"
    return f"{key}: {error['msg']} (found {error['input']!r:.80})"
