"""Numbers that are not finite stop the run by name: before the update where they are in its rows, else before the step
is recorded."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from envace.config import Params
from envace.errors import TrainingError
from envace.rollout.records import rollout_row
from envace.training.finite import require_finite_rollouts, require_finite_rows, require_finite_update
from envace.training.labels import PADDING_ROLE, LabelledBatch, RowLabel
from envace.types import Rollout, StopReason

NAN, INF = float("nan"), float("inf")
GOOD = {"actor/loss": 0.1, "actor/pg_loss": 0.1, "actor/grad_norm": 2.0, "actor/lr": 1e-6}


def rows_with(value: float) -> list[torch.Tensor]:
    return [torch.tensor([-0.1, -0.2]), torch.tensor([-0.3, value, -0.1])]


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_a_row_that_counts_must_be_finite(value: float) -> None:
    with pytest.raises(TrainingError, match=r"step 7: log-probabilities of 1 row.*first is row 1.*untouched"):
        require_finite_rows("log-probabilities", 7, rows_with(value), [True, True])
    require_finite_rows("log-probabilities", 7, rows_with(value), [True, False])  # padding may hold anything
    require_finite_rows("log-probabilities", 7, rows_with(0.0), [True, True])


@pytest.mark.parametrize("name", ["loss", "pg_loss", "kl_loss", "grad_norm"])
@pytest.mark.parametrize("value", [NAN, INF])
def test_an_update_must_be_finite(name: str, value: float) -> None:
    require_finite_update(3, GOOD)
    with pytest.raises(TrainingError, match=rf"step 3: the update is not finite \({name} {value}\).*not recorded"):
        require_finite_update(3, GOOD | {f"actor/{name}": value})


class Table:
    """What TransferQueue is to the trainer: columns of one batch, that verl's part of the trainer writes."""

    def __init__(self, **columns: list[torch.Tensor]) -> None:
        self.columns = columns

    def kv_batch_get(self, *, keys: list[str], partition_id: str, select_fields: list[str]) -> dict[str, Any]:
        return {f: torch.nested.as_nested_tensor(self.columns[f], layout=torch.jagged) for f in select_fields}


@pytest.fixture
def trainer(plugins: Any, params: Params, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A trainer in the middle of step 5, whose parts that are verl's own do nothing but note that they ran."""
    from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

    from envace.training import trainer as module

    made: Any = object.__new__(module.EnvaceTrainer)
    made.global_steps, made.ran, made.actor_rollout_wg = 5, [], None
    made._labels = LabelledBatch(
        [RowLabel("act", "0#0", True, (0, 0, 0), ""), RowLabel("act", "0#1", True, (0, 1, 0), "")], params.advantage
    )
    sizes = SimpleNamespace(actor=SimpleNamespace(ppo_mini_batch_size=4), rollout=SimpleNamespace(n=2))
    made.config = SimpleNamespace(actor_rollout_ref=sizes)
    made.update = dict(GOOD)

    def note(name: str) -> Any:
        def run(self: Any, batch: Any, metrics: dict[str, Any]) -> Any:
            self.ran.append(name)
            if name == "_update_actor":
                metrics.update(self.update)
            return batch

        return run

    for name in ("_compute_old_log_prob", "_compute_ref_log_prob", "_compute_advantage", "_update_actor"):
        monkeypatch.setattr(PPOTrainerSync, name, note(name))
    columns = {name: rows_with(0.0) for name in ("old_log_probs", "ref_log_prob", "advantages")}
    made.table = Table(**columns)
    monkeypatch.setattr(module.tq, "kv_batch_get", made.table.kv_batch_get)
    return made


def one_step(trainer: Any) -> None:
    """The order of verl's PPOTrainer._step_once."""
    batch = _Batch(["a", "b"])
    for part in ("_compute_old_log_prob", "_compute_ref_log_prob", "_compute_advantage", "_update_actor"):
        getattr(trainer, part)(batch, {})


def faulty_record(task: str = "weather-7") -> str:
    rollout = Rollout(task, 0, stop_reason=StopReason.ENGINE_FAILURE, not_finite=True)
    return json.dumps(rollout_row(rollout, step=5, phase="train"))


def test_a_rollout_sampled_with_a_nan_stops_the_step_before_it_is_balanced(
    trainer: Any, params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [RowLabel("act", "0#0", True, (0, 0, 0), "{}"), RowLabel("act", "1#0", False, (1, 0, 0), faulty_record())]
    monkeypatch.setattr(type(trainer), "_read_labels", lambda self, batch: rows)
    with pytest.raises(TrainingError, match=r"step 5: 1 training rollout.*task weather-7.*nothing was updated"):
        trainer._balance_batch(_Batch(["a", "b"]), {})
    assert trainer.ran == []


def test_a_validation_sampled_with_a_nan_is_not_recorded(trainer: Any) -> None:
    trainer._recorder = SimpleNamespace(write=lambda *_: trainer.ran.append("recorded"))
    with pytest.raises(TrainingError, match=r"step 5: 1 validation rollout.*task weather-7"):
        trainer._val_metrics_update([], [], {"record": ["", faulty_record()]}, [])
    assert trainer.ran == []


def test_words_of_a_record_stop_nothing() -> None:
    rollout = Rollout("not_finite", 0, stop_reason=StopReason.ENGINE_FAILURE, error='"not_finite": true')
    require_finite_rollouts(5, "training", ["", json.dumps(rollout_row(rollout, step=5, phase="train"))])


class _Batch:
    def __init__(self, keys: list[str]) -> None:
        self.keys, self.partition_id = keys, "train"

    def __len__(self) -> int:
        return len(self.keys)


def test_a_sound_step_runs_through(trainer: Any) -> None:
    one_step(trainer)
    assert trainer.ran[-1] == "_update_actor"
    assert trainer.config.actor_rollout_ref.actor.ppo_mini_batch_size == 4


@pytest.mark.parametrize("field", ["old_log_probs", "ref_log_prob", "advantages"])
def test_a_nan_in_a_row_stops_the_step_before_any_weight_is_touched(trainer: Any, field: str) -> None:
    trainer.table.columns[field] = rows_with(NAN)
    with pytest.raises(TrainingError, match=r"step 5: .* nothing was updated"):
        one_step(trainer)
    assert "_update_actor" not in trainer.ran


def test_a_nan_in_a_row_that_does_not_count_stops_nothing(trainer: Any, params: Params) -> None:
    trainer.table.columns["old_log_probs"] = rows_with(NAN)
    trainer._labels = LabelledBatch(
        [RowLabel("act", "0#0", True, (0, 0, 0), ""), RowLabel(PADDING_ROLE, "0#0", True, (0, 0, 0), "")],
        params.advantage,
    )
    one_step(trainer)


def test_a_nan_in_the_gradient_stops_the_step_before_it_is_saved_or_recorded(trainer: Any) -> None:
    trainer.update["actor/grad_norm"] = NAN
    with pytest.raises(TrainingError, match="grad_norm nan"):
        one_step(trainer)
    assert trainer.config.actor_rollout_ref.rollout.n == 2  # put back although it failed


def test_verl_leaves_the_weights_alone_where_the_gradient_is_not_finite(plugins: Any) -> None:
    """What require_finite_update relies on."""
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

    engine: Any = object.__new__(FSDPEngineWithLMHead)
    engine.module = torch.nn.Linear(2, 2)
    engine.optimizer = torch.optim.AdamW(engine.module.parameters(), lr=0.1)
    engine.optimizer_config, engine._qat_enabled = SimpleNamespace(clip_grad=1.0), False
    before = [p.detach().clone() for p in engine.module.parameters()]
    for parameter in engine.module.parameters():
        parameter.grad = torch.full_like(parameter, NAN)
    engine.optimizer_step()
    assert all(torch.equal(b, p) for b, p in zip(before, engine.module.parameters(), strict=True))
