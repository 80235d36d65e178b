"""Method per_role: two policies, one for each role's rows; the act policy is the product (docs/training.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from transfer_queue import KVBatchMeta
from verl.trainer.ppo.utils import Role as Part
from verl.trainer.ppo.v1.trainer_base import register_trainer

from envace.training.bring_home import SECOND
from envace.training.cpu_backend.one_server import client_of
from envace.training.labels import LabelledBatch, RowLabel
from envace.training.second_policy import RoleClients, SecondPolicy
from envace.training.trainer import EnvaceTrainer
from envace.types import Role

PER_ROLE_MODE = "envace_per_role"


@register_trainer(PER_ROLE_MODE)
class PerRoleTrainer(EnvaceTrainer):
    """verl's worker group is the act policy's; the rehearse policy's stands beside it."""

    def _setup(self) -> None:
        super()._setup()
        part = Part.ActorRolloutRef if self.use_reference_policy else Part.ActorRollout
        pool = self.resource_pool_manager.get_resource_pool(part)
        self._second = SecondPolicy(self.config, self.role_worker_mapping[part], pool)
        if self.global_steps:
            self._second.load(self.config.trainer.resume_from_path)

    def on_init_end(self) -> None:
        """Called by verl when everything is built."""
        super().on_init_end()
        self._second.send_weights(self.global_steps)

    def on_step_end(self) -> None:
        """Called by verl after an update."""
        super().on_step_end()
        self._second.send_weights(self.global_steps)

    def on_sample_end(self) -> None:
        """Called by verl when a batch of rollouts has come in."""
        super().on_sample_end()
        self._second.sleep()

    def get_llm_client(self) -> Any:
        """The servers of both policies."""
        return RoleClients(super().get_llm_client(), client_of(self._second.servers))

    def _balance_batch(self, batch: Any, metrics: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        rehearsed = [row.role == Role.REHEARSE for row in self._read_labels(batch)]
        parts, labels = [], []
        for wanted in (False, True):
            keys = [key for key, is_rehearsed in zip(batch.keys, rehearsed, strict=True) if is_rehearsed is wanted]
            if not keys:
                continue
            parts.append(super()._balance_batch(batch.select_keys(keys), metrics, *args, **kwargs))
            assert self._labels is not None
            labels.append(self._labels.rows)
        self._labels = LabelledBatch(
            [row for rows in labels for row in rows], self._settings.advantage, [len(rows) for rows in labels]
        )
        return KVBatchMeta(
            keys=[key for part in parts for key in part.keys],
            tags=[tag for part in parts for tag in part.tags],
            partition_id=batch.partition_id,
            extra_info=batch.extra_info,
        )

    def _update_actor(self, batch: Any, metrics: dict[str, Any]) -> Any:
        labels = self._labels
        assert labels is not None
        begin = 0
        try:
            for size in labels.updates:
                rows, keys = labels.rows[begin : begin + size], batch.keys[begin : begin + size]
                begin += size
                self._labels = LabelledBatch(rows, labels.advantage)
                update = self._update_second if _is_rehearsed(rows) else super()._update_actor
                update(batch.select_keys(keys), metrics)
        finally:
            self._labels = labels
        return batch

    def _update_second(self, part: Any, metrics: dict[str, Any]) -> None:
        """The same update on the other worker group; its figures are named `rehearse/...`."""
        first = self.actor_rollout_wg
        mine: dict[str, Any] = {}
        self.actor_rollout_wg = self._second.workers
        try:
            super()._update_actor(part, mine)
        finally:
            self.actor_rollout_wg = first
        metrics.update({f"{SECOND}/{name}": value for name, value in mine.items()})

    def _save_checkpoint(self) -> None:
        super()._save_checkpoint()
        folder = os.path.join(self.config.trainer.default_local_dir, f"global_step_{self.global_steps}")
        self._second.save(folder, self.global_steps, self.config.trainer.max_actor_ckpt_to_keep)


def _is_rehearsed(rows: Sequence[RowLabel]) -> bool:
    return any(row.role == Role.REHEARSE for row in rows)
