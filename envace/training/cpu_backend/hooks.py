"""What the CPU backend changes in verl 0.9.1 beside the platform: each item names the seam and why it is needed."""

from __future__ import annotations

import os
from typing import Any

ROLLOUT_NAME = "envace_cpu"


def install() -> None:
    """Register the rollout server and the CPU engine, and replace two calls that assume a device."""
    import verl.utils.distributed as distributed
    import verl.workers.engine.fsdp.transformer_impl as fsdp
    from verl.workers.engine.base import EngineRegistry
    from verl.workers.rollout import base, replica

    from envace.training.cpu_backend.training_engine import CpuEngineWithLMHead

    # The rollout's trainer-side client has only a private table; its server has a registry.
    base._ROLLOUT_REGISTRY[(ROLLOUT_NAME, "async")] = "envace.training.cpu_backend.rollout_server.CpuServerAdapter"
    replica.RolloutReplicaRegistry.register(ROLLOUT_NAME, _replica)
    # verl asks torch for the backend "cpu:gloo,<device>:<backend>": with device cpu torch refuses the repeated name.
    distributed.initialize_global_process_group_ray = init_process_group
    # verl registers its FSDP engine for cuda and npu alone.
    register = EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cpu")
    register(CpuEngineWithLMHead)
    # A reference model (KL on) would be offloaded to pinned host memory: it is on the host, and nothing can be pinned.
    fsdp.CPUOffloadPolicy = no_offload  # type: ignore[assignment,misc]


def _replica() -> Any:
    from envace.training.cpu_backend.rollout_server import CpuReplica

    return CpuReplica


def no_offload(pin_memory: bool = True) -> None:
    """In place of FSDP's offload policy: None offloads nothing."""


def init_process_group(timeout_second: int | None = None, backend: str | None = None) -> None:
    """In place of verl's: gloo alone."""
    import torch.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group(
            "gloo",
            rank=int(os.environ.get("RANK", 0)),
            world_size=int(os.environ.get("WORLD_SIZE", 1)),
            init_method=os.environ.get("DIST_INIT_METHOD"),
        )
