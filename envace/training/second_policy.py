"""A second policy in a verl run: worker group, rollout servers and weight sync of its own, in the first one's pool."""

from __future__ import annotations

import os
from typing import Any

from verl.checkpoint_engine import CheckpointEngineManager
from verl.single_controller.ray import RayClassWithInitArgs, RayWorkerGroup, create_colocated_worker_cls
from verl.trainer.ppo.utils import Role as Part
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.rollout.llm_server import LLMServerClient, LLMServerManager

from envace.training.bring_home import SECOND
from envace.training.cpu_backend import POLICY_VARIABLE
from envace.types import Role


class SecondServers(LLMServerManager):
    """Rollout servers beside the first policy's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        from envace.training.cpu_backend.rollout_server import SecondCpuReplica

        self.rollout_replica_class = SecondCpuReplica  # verl's constructor leaves it as it is
        super().__init__(*args, **kwargs)


class RoleClients:
    """What an agent loop asks for the servers of a role. verl sets `tokenizer` on it."""

    def __init__(self, act: LLMServerClient, rehearse: LLMServerClient) -> None:
        self._clients = {Role.ACT: act, Role.REHEARSE: rehearse}
        self.tokenizer: Any = None

    def of(self, role: Role) -> LLMServerClient:
        """The servers of one role's policy."""
        return self._clients[role]


class SecondPolicy:
    """Starts from the same weights as the first one. Built once verl has built that."""

    def __init__(self, config: Any, worker_class: Any, pool: Any) -> None:
        part = str(Part.ActorRollout)  # without a reference model: the first group's serves both
        settings = {"config": config.actor_rollout_ref, "distillation_config": config.get("distillation")}
        made = RayClassWithInitArgs(cls=worker_class, role=part, **settings)
        group = RayWorkerGroup(
            resource_pool=pool,
            ray_cls_with_init=create_colocated_worker_cls({part: made}),
            device_name=config.trainer.device,
            worker_env={POLICY_VARIABLE: SECOND},  # by which a worker finds its own server
        )
        self.workers: Any = group.spawn(prefix_set={part})[part]
        self.workers.init_model()
        self.servers: Any = SecondServers.create(config=config, worker_group=self.workers, rollout_resource_pool=pool)
        engine = omega_conf_to_dataclass(config.actor_rollout_ref.rollout.checkpoint_engine)
        engine.backend = "naive"
        replicas = self.servers.get_replicas()
        self._sync: Any = CheckpointEngineManager(config=engine, actor_wg=self.workers, replicas=replicas)
        self._sync.sleep_replicas()

    def send_weights(self, step: int) -> None:
        """Give its rollout servers the weights of `step`."""
        self._sync.update_weights(step)

    def sleep(self) -> None:
        """Let its rollout servers free what they can."""
        self._sync.sleep_replicas()

    def save(self, checkpoint: str, step: int, keep: int | None) -> None:
        """Write it beside the first policy's part of a checkpoint."""
        self.workers.save_checkpoint(os.path.join(checkpoint, SECOND), None, step, max_ckpt_to_keep=keep)

    def load(self, checkpoint: str) -> None:
        """Read it back."""
        self.workers.load_checkpoint(local_path=os.path.join(checkpoint, SECOND), del_local_after_load=False)
