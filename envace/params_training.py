"""The section train_policy of params.yaml: recipe, method and hardware."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from envace.params_basis import Count, EndpointParams, Positive, SamplingParams, Section


class HardwareParams(Section):
    """What the run is spread over. The CPU backend is one process on one machine, whatever stands here about GPUs."""

    nodes: Count
    gpus_per_node: Count
    tensor_parallel: Count
    max_model_len: Count | None
    max_sequences: Count
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)]
    tokens_per_gpu: Count | None
    gradient_checkpointing: bool
    offload: bool
    rollout_workers: Count

    @model_validator(mode="after")
    def _whole_engines(self) -> HardwareParams:
        if self.nodes * self.gpus_per_node % self.tensor_parallel:
            raise ValueError("tensor_parallel must divide nodes * gpus_per_node")
        return self


class SimulatorParams(Section):
    """The LLM that plays the environment in method grpo."""

    endpoint: EndpointParams
    sampling: SamplingParams


class TrainPolicyParams(Section):
    """See docs/training.md."""

    method: Literal["envace", "grpo", "per_role"]
    simulator: SimulatorParams
    backend: Literal["cpu", "cuda"]
    hardware: HardwareParams
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
    old_log_probs: Literal["rollout", "trainer"]
    validate_every: Count
    validation_act: SamplingParams
    checkpoint_every: Count
    keep_checkpoints: Annotated[int, Field(ge=2)]
    export: Literal["last", "best"]
    micro_batch_rows: Count

    @model_validator(mode="after")
    def _needs_a_simulator(self) -> TrainPolicyParams:
        endpoint = self.simulator.endpoint
        if self.method == "grpo" and not (endpoint.base_url and endpoint.model):
            raise ValueError("method is 'grpo', so simulator.endpoint.base_url and .model must be given")
        return self

    @model_validator(mode="after")
    def _within_what_is_built(self) -> TrainPolicyParams:
        if self.method == "per_role" and self.backend == "cuda":
            raise ValueError(
                "method 'per_role' runs on backend 'cpu' alone: verl's vLLM workers find their server by their rank, "
                "so those of a second policy would write into the first one's server"
            )
        if self.method == "per_role" and self.old_log_probs != "rollout":
            raise ValueError("method 'per_role' needs old_log_probs 'rollout': each policy knows its own rows alone")
        return self
