"""Two policies in one run: a batch cut by role, each part padded and ordered by itself, each policy updated on its own
rows."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from envace.config import Params
from envace.errors import TrainingError
from envace.training.labels import PADDING_ROLE, RowLabel

MULTIPLE = 4
UPDATE = {"actor/grad_norm": 1.0, "actor/pg_loss": 0.0}


class Workers:
    """A worker group that notes what it is asked to update on."""

    def __init__(self, **figures: float) -> None:
        self.batches: list[Any] = []
        self.figures, self._dispatch_info = UPDATE | figures, {"actor": [0]}

    def update_actor(self, batch: Any) -> dict[str, float]:
        self.batches.append(batch)
        return self.figures


@pytest.fixture
def trainer(plugins: Any, params: Params, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A trainer of two policies. verl is played: it pads to whole micro-batches and calls its workers."""
    from transfer_queue import KVBatchMeta
    from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

    from envace.training.per_role_trainer import PerRoleTrainer

    def pad(self: Any, batch: Any, metrics: dict[str, Any]) -> Any:
        missing = -len(batch) % MULTIPLE
        begun = f"pad{len(metrics)}"
        metrics[begun] = missing
        keys = [*batch.keys, *(f"{begun}_{i}" for i in range(missing))]
        tags = [*batch.tags, *({**batch.tags[0], "is_padding": True, "seq_len": 128} for _ in range(missing))]
        return KVBatchMeta(keys=keys, tags=tags, partition_id=batch.partition_id, extra_info=batch.extra_info)

    def update(self: Any, batch: Any, metrics: dict[str, Any]) -> Any:
        metrics.update(self.actor_rollout_wg.update_actor(batch))
        return batch

    monkeypatch.setattr(PPOTrainerSync, "_balance_batch", pad)
    monkeypatch.setattr(PPOTrainerSync, "_update_actor", update)
    made: Any = object.__new__(PerRoleTrainer)
    made.actor_rollout_wg, made._second = Workers(), SimpleNamespace(workers=Workers())
    made._settings, made._labels = SimpleNamespace(advantage=params.advantage), None
    sizes = SimpleNamespace(actor=SimpleNamespace(ppo_mini_batch_size=4), rollout=SimpleNamespace(n=2))
    made.config, made.global_steps = SimpleNamespace(actor_rollout_ref=sizes), 3

    def labels(batch: Any) -> list[RowLabel]:
        return [RowLabel.of(t["fields"], padding=t.get("is_padding", False)) for t in batch.tags]

    made._read_labels = labels
    return made


def make_batch(*roles: str) -> Any:
    """Rows of these roles; a later one is shorter. An upper-case role belongs to a rollout without reward."""
    from transfer_queue import KVBatchMeta

    tags = []
    for i, role in enumerate(roles):
        fields = {"role": role.lower(), "scorable": role.islower(), "order": [0, 0, i], "record": ""}
        tags.append({"seq_len": 100 - i, "fields": fields})
    keys = [f"{role}{i}" for i, role in enumerate(roles)]
    return KVBatchMeta(keys=keys, tags=tags, partition_id="train", extra_info={"temperature": 1.0})


def test_each_policy_is_updated_on_the_rows_of_its_own_role(trainer: Any) -> None:
    batch = trainer._balance_batch(make_batch("act", "rehearse", "act", "rehearse", "act", "ACT", "act"), {})
    assert len(batch) == 12 and batch.extra_info == {"temperature": 1.0}
    assert trainer._labels.updates == [8, 4]
    metrics: dict[str, Any] = {}
    first = trainer.actor_rollout_wg
    trainer._update_actor(batch, metrics)
    (acts,), (rehearsals,) = first.batches, trainer._second.workers.batches
    assert [k for k in acts.keys if not k.startswith("pad")] == ["act6", "ACT5", "act4", "act2", "act0"]
    assert [k for k in rehearsals.keys if not k.startswith("pad")] == ["rehearse3", "rehearse1"]
    assert (acts.extra_info["global_batch_size"], rehearsals.extra_info["global_batch_size"]) == (4, 2)
    assert trainer.actor_rollout_wg is first and len(trainer._labels.rows) == 12
    assert metrics == UPDATE | {f"rehearse/{name}": value for name, value in UPDATE.items()}


def test_labels_are_in_the_order_of_the_rows(trainer: Any) -> None:
    batch = trainer._balance_batch(make_batch("rehearse", "act", "act"), {})
    roles = [PADDING_ROLE if t.get("is_padding") else t["fields"]["role"] for t in batch.tags]
    assert [row.role for row in trainer._labels.rows] == roles
    assert roles[:2] == ["act", "act"] and roles[4] == "rehearse"


def test_the_order_in_which_rollouts_end_changes_nothing(trainer: Any) -> None:
    roles = ["act", "rehearse", "act", "act", "rehearse", "ACT"]
    wanted = trainer._balance_batch(make_batch(*roles), {})
    labels = trainer._labels.rows
    for seed in range(20):
        batch = make_batch(*roles)
        batch.reorder(random.Random(seed).sample(range(len(roles)), len(roles)))
        found = trainer._balance_batch(batch, {})
        assert (found.keys, found.tags, trainer._labels.rows) == (wanted.keys, wanted.tags, labels)


def test_without_rehearse_rows_the_rehearse_policy_is_left_alone(trainer: Any) -> None:
    batch = trainer._balance_batch(make_batch("act", "act", PADDING_ROLE), {})
    metrics: dict[str, Any] = {}
    trainer._update_actor(batch, metrics)
    assert len(trainer.actor_rollout_wg.batches) == 1 and not trainer._second.workers.batches
    assert metrics == UPDATE


def test_an_update_of_the_second_policy_that_is_not_finite_stops_the_run(trainer: Any) -> None:
    batch = trainer._balance_batch(make_batch("act", "rehearse"), {})
    first = trainer.actor_rollout_wg
    trainer._second.workers = Workers(**{"actor/grad_norm": float("nan")})
    with pytest.raises(TrainingError, match="grad_norm nan"):
        trainer._update_actor(batch, {})
    assert trainer.actor_rollout_wg is first and len(trainer._labels.rows) == len(batch)
