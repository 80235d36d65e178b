"""verl's rollout server on the CPU engine: one Ray actor that generates, and a client that pushes new weights to it."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import ray
import torch
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput

from envace.engines.load import load_policy
from envace.engines.protocol import GenerationRequest
from envace.errors import EngineError
from envace.training.cpu_backend import POLICY_VARIABLE

MAX_SLOTS = 128


def _actor_name(rank: int, policy: str = "") -> str:
    return f"envace_cpu_server_{policy}{rank}"


class CpuServer:
    """The actor's body. Weights change only between steps, when nothing is being generated."""

    def __init__(self, model_path: str, max_length: int) -> None:
        torch.set_num_threads(1)
        policy = load_policy(Path(model_path), max_slots=MAX_SLOTS, max_length=max_length)
        self._engine = policy.engine
        self._weights: dict[str, torch.Tensor] = self._engine.model.state_dict()
        self._global_steps: int | None = None

    async def ready(self) -> bool:
        """Answers once the model is loaded."""
        return True

    async def generate(
        self,
        prompt_ids: list[int],
        sampling_params: dict[str, Any],
        request_id: str,
        image_data: Any = None,
        video_data: Any = None,
    ) -> TokenOutput:
        """Sample one output for verl. `sampling_params` are those our agent loop sends."""
        if image_data or video_data:
            raise EngineError("the CPU rollout server is for text only")
        request = GenerationRequest(
            session=request_id,
            prompt_ids=list(prompt_ids),
            max_tokens=int(sampling_params["max_tokens"]),
            temperature=float(sampling_params["temperature"]),
            top_p=float(sampling_params["top_p"]),
            seed=int(sampling_params["seed"]),
        )
        generation = await self._engine.generate(request)
        return TokenOutput(
            token_ids=generation.token_ids,
            log_probs=generation.log_probs,
            stop_reason="completed",
            num_preempted=0,
            extra_fields={"global_steps": self._global_steps},
        )

    async def load_weights(self, weights: dict[str, torch.Tensor], global_steps: int | None) -> None:
        """Copy new weights in place. Raises EngineError for names the model does not have, or lacks."""
        unknown = sorted(set(weights) - set(self._weights))
        if unknown:
            raise EngineError(f"the trainer sent weights this model does not have: {unknown[:3]}")
        tied = {name for name, value in self._weights.items() if self._is_tied(name, value, weights)}
        missing = sorted(set(self._weights) - set(weights) - tied)
        if missing:
            raise EngineError(f"the trainer sent no weights for {missing[:3]}")
        with torch.no_grad():
            for name, value in weights.items():
                self._weights[name].copy_(value)
        self._engine.forget()
        self._global_steps = global_steps if global_steps is not None else self._global_steps

    def _is_tied(self, name: str, value: torch.Tensor, sent: dict[str, torch.Tensor]) -> bool:
        return name not in sent and any(self._weights[n].data_ptr() == value.data_ptr() for n in sent)

    async def set_global_steps(self, step: int) -> None:
        """The version of the weights, recorded with every output."""
        self._global_steps = step

    async def nothing(self, *args: Any, **kwargs: Any) -> None:
        """A request of verl's that means nothing for a server that shares no device memory."""

    sleep = wake_up = clear_kv_cache = release_kv_cache = resume_kv_cache = nothing
    abort_all_requests = resume_generation = start_profile = stop_profile = nothing


class CpuReplica(RolloutReplica):
    """Starts the actor of one replica."""

    policy = ""

    async def launch_servers(self) -> None:
        """Called by verl when the trainer's workers exist."""
        name = _actor_name(self.replica_rank, self.policy)
        length = self.config.prompt_length + self.config.response_length
        actor = ray.remote(CpuServer).options(name=name, num_cpus=0, max_concurrency=1000)
        server: Any = actor.remote(self.model_config.path, length)
        await server.ready.remote()
        self.servers, self._server_handle, self._server_address = [server], server, name


class SecondCpuReplica(CpuReplica):
    """One of a second policy."""

    policy = "rehearse"


class CpuServerAdapter(BaseRollout):
    """The trainer worker's side: pushes all weights with one Ray call."""

    def __init__(self, config: Any, model_config: Any, device_mesh: Any, replica_rank: int = -1) -> None:
        super().__init__(config, model_config, device_mesh)
        self._rank = int(os.environ["RANK"]) if replica_rank == -1 else replica_rank

    async def resume(self, tags: list[str]) -> None:
        """Nothing was released."""

    async def release(self) -> None:
        """Nothing to release."""

    async def update_weights(
        self,
        weights: Generator[tuple[str, torch.Tensor], None, None],
        wire_format: str = "named_tensors",
        global_steps: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Send the trainer's full tensors to the server."""
        if wire_format != "named_tensors":
            raise EngineError(f"the CPU rollout server takes named tensors, not {wire_format!r}")
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights}
        server: Any = ray.get_actor(_actor_name(self._rank, os.environ.get(POLICY_VARIABLE, "")))
        await server.load_weights.remote(tensors, global_steps)
