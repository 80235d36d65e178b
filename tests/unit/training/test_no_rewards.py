"""A step in which no rollout has a reward changes nothing and stops nothing, whoever computes the log-probabilities."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from envace.config import Params
from envace.training.labels import LabelledBatch, RowLabel
from envace.training.overrides import RunPaths, compose, verl_overrides

LENGTHS = (3, 2)


def nested(value: float) -> torch.Tensor:
    return torch.nested.as_nested_tensor([torch.full((n,), value) for n in LENGTHS], layout=torch.jagged)


class Queue:
    """What TransferQueue is to the trainer: the columns of one batch, read and written."""

    def __init__(self) -> None:
        self.columns: dict[str, Any] = {
            "uid": ["g", "g"],
            "response_mask": nested(0.0),
            "rm_scores": nested(0.0),
            "rollout_log_probs": nested(-0.5),
            "old_log_probs": nested(-0.4),
        }

    def kv_batch_get(self, *, keys: list[str], partition_id: str, select_fields: list[str]) -> Any:
        from tensordict import NonTensorStack, TensorDict

        found = {name: self.columns[name] for name in select_fields if name in self.columns}
        if "uid" in found:
            found["uid"] = NonTensorStack(*found["uid"])  # type: ignore[abstract]
        return TensorDict(found, batch_size=len(keys))

    def kv_batch_put(self, *, keys: list[str], partition_id: str, fields: Any) -> Any:
        self.columns.update(fields.items())
        return Batch()


class Batch:
    """Two rows of one group."""

    keys, partition_id, extra_info = ("g_0_0", "g_1_0"), "train", SimpleNamespace(update=lambda _: None)

    def __len__(self) -> int:
        return len(self.keys)


@pytest.mark.parametrize("by", ["rollout", "trainer"])
def test_a_step_without_any_reward_has_no_advantages(
    plugins: Any, params: Params, run_paths: RunPaths, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transfer_queue

    from envace.training import trainer as module

    train = params.train_policy.model_copy(update={"old_log_probs": by})
    made: Any = object.__new__(module.EnvaceTrainer)
    made.config = compose(verl_overrides(params.model_copy(update={"train_policy": train}), run_paths, None))
    made.global_steps, queue, metrics = 5, Queue(), {}
    rows = [RowLabel("act", f"0#{i}", False, (0, i, 0), "") for i in range(2)]
    made._labels = LabelledBatch(rows, params.advantage)
    for name in ("kv_batch_get", "kv_batch_put"):  # verl's and ours, of one module
        monkeypatch.setattr(transfer_queue, name, getattr(queue, name))
    made._compute_advantage(Batch(), metrics)
    advantages = queue.columns["advantages"]
    assert [row.tolist() for row in advantages.unbind()] == [[0.0] * n for n in LENGTHS]
    assert made._labels.scalar_advantages == [0.0, 0.0]
