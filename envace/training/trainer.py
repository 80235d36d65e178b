"""verl's synchronous trainer with roles: row labels, one update a step, per-role metrics, step records."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import transfer_queue as tq
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

from envace.training.best import close_checkpoint
from envace.training.cpu_backend.one_server import client_of
from envace.training.finite import require_finite_rollouts, require_finite_rows, require_finite_update
from envace.training.labels import LabelledBatch, RowLabel, labelled
from envace.training.recorder import Recorder
from envace.training.settings import read_settings
from envace.training.step_metrics import advantage_metrics, rollout_metrics
from envace.training.stopwatch import summed

TRAINER_MODE = "envace_sync"
POLL_S = 0.05  # verl's replay buffer looks every 2 s, longer than a small step's whole generation

# verl's own figures that are worth keeping beside ours; the rest are timings, sizes or duplicates
_KEPT = {
    "actor/pg_loss": "update/pg_loss",
    "actor/ppo_kl": "update/approx_kl",
    "actor/pg_clipfrac": "update/clip_share",
    "actor/grad_norm": "update/grad_norm",
    "actor/lr": "update/learning_rate",
    "actor/kl_loss": "update/kl_loss",
}


class MeanOverCounted:
    """A worker group for one update, which divides by the outputs that count: the objective's mean is over those.

    verl divides each part of the loss (policy, KL, entropy) by all rows of the update, padding and unscorable included.
    """

    def __init__(self, workers: Any, rows: Sequence[RowLabel]) -> None:
        self._workers, self._count = workers, max(1, sum(len(row.spans) for row in rows if row.counts))

    def update_actor(self, batch: Any) -> Any:
        """verl's call, with another divisor."""
        batch.extra_info["global_batch_size"] = self._count
        return self._workers.update_actor(batch)


class EnvaceTrainer(PPOTrainerSync):
    """PPOTrainerSync for batches of act and rehearse rows."""

    actor_rollout_wg: Any

    # verl compares the mode with "sync" in several places and takes any other name for an asynchronous trainer
    trainer_mode = property(lambda self: "sync", lambda self, value: None)  # type: ignore[assignment]

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._settings = read_settings(config.actor_rollout_ref.rollout.agent.agent_loop_config_path)
        self._recorder = Recorder(Path(self._settings.records))
        self._labels: LabelledBatch | None = None

    def on_init_end(self) -> None:
        """Called by verl when everything is built."""
        self.replay_buffer.poll_interval = POLL_S
        super().on_init_end()

    def get_llm_client(self) -> Any:
        """What agent loops ask for outputs."""
        return client_of(self.llm_server_manager)

    def _get_required_batch_multiple(self, dp_size: int) -> int:
        # verl pads to whole mini-batches of prompts x n; one update a step only needs whole micro-batches a rank
        actor = self.config.actor_rollout_ref.actor
        return dp_size if actor.use_dynamic_bsz else dp_size * actor.ppo_micro_batch_size_per_gpu

    def _balance_batch(self, batch: Any, metrics: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        # rows come in the order in which rollouts ended; what is made of them must not depend on that
        rows = self._read_labels(batch)
        require_finite_rollouts(self.global_steps, "training", (row.record for row in rows))
        batch.reorder(sorted(range(len(batch)), key=lambda i: rows[i].order))
        batch = super()._balance_batch(batch, metrics, *args, **kwargs)
        rows = self._read_labels(batch)
        ranks = max(self.actor_rollout_wg._dispatch_info["actor"]) + 1
        share = len(batch) // ranks
        # like lengths together inside each rank's share: fixed micro-batches are padded to their longest row
        order = sorted(range(len(batch)), key=lambda i: (i // share, batch.tags[i]["seq_len"], rows[i].order))
        batch.reorder(order)
        self._labels = LabelledBatch([rows[i] for i in order], self._settings.advantage)
        return batch

    def _require_finite(self, name: str, field: str, batch: Any) -> None:
        assert self._labels is not None
        data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=[field])
        values: Any = data[field]
        require_finite_rows(name, self.global_steps, values.unbind(), [row.counts for row in self._labels.rows])

    def _compute_old_log_prob(self, batch: Any, metrics: dict[str, Any]) -> Any:
        batch = super()._compute_old_log_prob(batch, metrics)
        self._require_finite("log-probabilities", "old_log_probs", batch)
        return batch

    def _compute_ref_log_prob(self, batch: Any, metrics: dict[str, Any]) -> Any:
        batch = super()._compute_ref_log_prob(batch, metrics)
        self._require_finite("log-probabilities by the reference policy", "ref_log_prob", batch)
        return batch

    def _read_labels(self, batch: Any) -> list[RowLabel]:
        data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=["extra_fields"])
        column = data["extra_fields"]  # a list or a tensordict stack, by what TransferQueue returns
        fields: list[Any] = column.tolist() if hasattr(column, "tolist") else list(column)  # type: ignore[assignment]
        padding = [bool(tag.get("is_padding", False)) for tag in batch.tags]
        return [RowLabel.of(f, padding=p) for f, p in zip(fields, padding, strict=True)]

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        assert self._labels is not None
        with labelled(self._labels):
            batch = super()._compute_advantage(batch, metrics)
        self._require_finite("advantages", "advantages", batch)
        return batch

    def _update_actor(self, batch: Any, metrics: dict[str, Any]) -> Any:
        # verl cuts the batch into mini-batches of ppo_mini_batch_size x n rows, an optimizer step each; several rows a
        # rollout would make several steps of it, so the sizes are set to one mini-batch for the length of the call
        assert self._labels is not None
        config, workers = self.config.actor_rollout_ref, self.actor_rollout_wg
        saved = config.actor.ppo_mini_batch_size, config.rollout.n
        config.actor.ppo_mini_batch_size, config.rollout.n = len(batch), 1
        self.actor_rollout_wg = MeanOverCounted(workers, self._labels.rows)
        try:
            batch = super()._update_actor(batch, metrics)
        finally:
            config.actor.ppo_mini_batch_size, config.rollout.n = saved
            self.actor_rollout_wg = workers
        require_finite_update(self.global_steps, metrics)
        return batch

    def _compute_metrics(self, batch: Any, metrics: Any, timing_raw: Any, global_steps: int, epoch: int) -> None:
        super()._compute_metrics(batch, metrics, timing_raw, global_steps, epoch)
        assert self._labels is not None
        records = [row.record for row in self._labels.rows if row.record]
        ours = rollout_metrics([json.loads(r) for r in records]) | advantage_metrics(self._labels)
        kept = {name: metrics[key] for key, name in _KEPT.items() if key in metrics}
        # of a second policy (method per_role)
        kept |= {f"rehearse_{n}": metrics[f"rehearse/{k}"] for k, n in _KEPT.items() if f"rehearse/{k}" in metrics}
        ours |= {name: round(float(v), 9) for name, v in kept.items() if math.isfinite(float(v))}
        metrics.update({f"envace/{k}": v for k, v in ours.items()})
        timings = {k.removeprefix("timing_s/"): float(v) for k, v in metrics.items() if k.startswith("timing_s/")}
        timings |= summed(self._labels.rows)
        self._recorder.write("train", global_steps, ours, records, timings)
        checkpoint = Path(self.config.trainer.default_local_dir) / f"global_step_{global_steps}"
        if checkpoint.is_dir():  # sealed last: who resumes from it finds the records of its step, validation included
            close_checkpoint(checkpoint, self._recorder, self._settings.keep_checkpoints)

    def _val_metrics_update(
        self, data_sources: Any, sample_uids: Any, reward_extra_infos_dict: Any, sample_turns: Any, **kwargs: Any
    ) -> dict[str, float]:
        records = [r for r in reward_extra_infos_dict.pop("record", []) if r]
        require_finite_rollouts(self.global_steps, "validation", records)
        ours = rollout_metrics([json.loads(r) for r in records], prefix="validation/")
        self._recorder.write("validation", self.global_steps, ours, records, {})
        theirs = super()._val_metrics_update(data_sources, sample_uids, reward_extra_infos_dict, sample_turns, **kwargs)
        return theirs | {f"envace/{k}": v for k, v in ours.items()}


register_trainer(TRAINER_MODE)(EnvaceTrainer)
