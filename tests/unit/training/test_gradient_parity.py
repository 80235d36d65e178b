"""One batch through verl's own engine and loss gives the method's objective, written out by hand, and its gradient."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from envace.config import AdvantageParams, Params
from envace.training.labels import PADDING_ROLE, LabelledBatch, RowLabel, Span, labelled
from envace.training.overrides import RunPaths, compose, verl_overrides
from envace.training.row_merging import chains, joined
from envace.types import Output, Role


@dataclass
class Row:
    """One training row: an output with its prompt, and what it belongs to."""

    group: str
    role: str
    rollout: str
    reward: float
    scorable: bool
    prompt: list[int]
    output: list[int]
    spans: tuple[Span, ...] = ()  # of several outputs in one row

    @property
    def mask(self) -> list[int]:
        own = [slice(s.begin, s.end) for s in self.spans] or [slice(0, None)]
        mask = [0] * len(self.output)
        for part in own:
            mask[part] = [int(self.counts)] * len(self.output[part])
        return mask

    @property
    def counts(self) -> bool:
        return self.scorable and self.role != PADDING_ROLE


def make_rows() -> list[Row]:
    rng = random.Random(0)

    def ids(low: int, high: int) -> list[int]:
        return [rng.randrange(7, 500) for _ in range(rng.randrange(low, high))]

    plan = [
        ("g", "act", "r0", 1.0, True),
        ("g", "act", "r1", 0.2, True),
        ("g", "rehearse", "r1", 0.2, True),
        ("g", "act", "r0", 1.0, True),
        ("h", "act", "r2", 0.0, False),
        ("g", "rehearse", "r0", 1.0, True),
        ("h", "act", "r3", 0.7, True),
        ("g", "act", "r2", 0.6, True),
    ]
    rows = [Row(*p, prompt=ids(5, 60), output=ids(1, 25)) for p in plan]
    rows += [Row("pad1", PADDING_ROLE, "pad", 0.0, True, [2] * 7, [2]) for _ in range(4)]  # as verl appends them
    rng.shuffle(rows)
    return rows


def baseline_advantages(rows: list[Row]) -> list[float]:
    """Method, section 4: the reward minus the mean reward of the (group, role), over scorable outputs."""
    result = []
    for row in rows:
        cell = [r.reward for r in rows if r.counts and (r.group, r.role) == (row.group, row.role)]
        result.append(row.reward - sum(cell) / len(cell) if row.counts else 0.0)
    return result


def by_hand(
    model: Any,
    rows: list[Row],
    old: list[torch.Tensor],
    reference: list[torch.Tensor],
    temperature: float,
    clip: float,
    kl: float,
) -> torch.Tensor:
    """-J of the method: mean over an output's tokens, then over scorable outputs; KL by the low-variance estimate."""
    total = torch.zeros(())
    for row, advantage, before, wanted in zip(rows, baseline_advantages(rows), old, reference, strict=True):
        if row.counts:
            now = log_probs(model, row, temperature)
            ratio, away = (now - before).exp(), wanted - now
            gain = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
            total = total + (gain - kl * (away.exp() - away - 1)).mean()
    return -total / sum(r.counts for r in rows)


def log_probs(model: Any, row: Row, temperature: float) -> torch.Tensor:
    logits = model(torch.tensor([row.prompt + row.output])).logits[0, len(row.prompt) - 1 : -1] / temperature
    return logits.log_softmax(-1).gather(1, torch.tensor(row.output)[:, None])[:, 0]


def estimator_advantages(rows: list[Row], params: AdvantageParams) -> list[torch.Tensor]:
    """The advantages of our estimator, called as verl calls it, one tensor a row."""
    from verl import DataProto
    from verl.trainer.ppo.ray_trainer import compute_advantage

    width = max(len(r.output) for r in rows)
    mask, rewards = torch.zeros(len(rows), width), torch.zeros(len(rows), width)
    for i, row in enumerate(rows):
        mask[i, : len(row.output)] = torch.tensor(row.mask, dtype=torch.float32)
        rewards[i, len(row.output) - 1] = row.reward if row.scorable else 0.0
    labels = [RowLabel(r.role, r.rollout, r.scorable, (0, 0, i), "", several=r.spans) for i, r in enumerate(rows)]
    data = DataProto.from_single_dict({"token_level_rewards": rewards, "response_mask": mask})
    data.non_tensor_batch["uid"] = np.array([r.group for r in rows], dtype=object)
    with labelled(LabelledBatch(labels, params)):
        data = compute_advantage(data, adv_estimator="role_wise_grpo")  # type: ignore[arg-type]
    return [data.batch["advantages"][i, : len(r.output)] for i, r in enumerate(rows)]


def through_verl(
    model: Any,
    rows: list[Row],
    old: list[torch.Tensor],
    reference: list[torch.Tensor],
    config: Any,
    params: AdvantageParams,
    micro_rows: int,
    engine_class: Any,
) -> float:
    """Accumulate the gradient in `model` as one update of verl's FSDP engine does, micro-batch by micro-batch.

    Returns the sum of the micro-batches' losses.
    """
    from functools import partial

    from tensordict import TensorDict
    from verl.utils import tensordict_utils as tu
    from verl.utils.config import omega_conf_to_dataclass
    from verl.workers.engine.utils import prepare_micro_batches
    from verl.workers.utils.losses import ppo_loss

    def nested(parts: list[Any]) -> torch.Tensor:
        return torch.nested.as_nested_tensor([torch.as_tensor(p) for p in parts], layout=torch.jagged)

    masks = [r.mask for r in rows]
    data = TensorDict(
        {
            "input_ids": nested([r.prompt + r.output for r in rows]),
            "position_ids": nested([range(len(r.prompt + r.output)) for r in rows]),
            "prompts": nested([r.prompt for r in rows]),
            "responses": nested([r.output for r in rows]),
            "response_mask": nested(masks),
            "loss_mask": nested(masks),
            "old_log_probs": nested(old),
            "ref_log_prob": nested(reference),
            "advantages": nested(estimator_advantages(rows, params)),
        },
        batch_size=len(rows),
    )
    tokens = sum(sum(m) for m in masks)
    tu.assign_non_tensor(data, use_dynamic_bsz=False, micro_batch_size_per_gpu=micro_rows, use_remove_padding=False)
    tu.assign_non_tensor(data, temperature=config.actor_rollout_ref.rollout.temperature, dp_size=1)
    tu.assign_non_tensor(data, batch_num_tokens=tokens)
    tu.assign_non_tensor(
        data, global_batch_size=sum(max(1, len(r.spans)) for r in rows if r.counts)
    )  # as MeanOverCounted says
    engine: Any = object.__new__(engine_class)
    engine.module, engine.pad_to_length, engine._autocast_dtype = model, None, torch.float32
    engine.engine_config = SimpleNamespace(entropy_checkpointing=False)
    engine.get_data_parallel_group = lambda: None
    loss = partial(ppo_loss, config=omega_conf_to_dataclass(config.actor_rollout_ref.actor))
    total = 0.0
    for micro_batch in prepare_micro_batches(data)[0]:
        part = engine.forward_step(micro_batch, loss, forward_only=False)[0]
        part.backward()
        total += float(part.detach())
    return total


def gradients(model: Any) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.fixture(params=["verl's", "of the CPU backend"])
def engine_class(request: pytest.FixtureRequest, plugins: Any) -> Any:
    """The classes of engines that train."""
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

    from envace.training.cpu_backend.training_engine import CpuEngineWithLMHead

    return FSDPEngineWithLMHead if request.param == "verl's" else CpuEngineWithLMHead


@pytest.mark.parametrize("micro_rows", [12, 3])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("moved", [False, True], ids=["on policy", "clipped"])
@pytest.mark.parametrize("kl", [0.0, 0.1])
def test_loss_and_gradient_of_verl_are_those_of_the_objective(
    plugins: Any,
    random_model: Callable[..., Any],
    params: Params,
    run_paths: RunPaths,
    engine_class: Any,
    micro_rows: int,
    temperature: float,
    moved: bool,
    kl: float,
) -> None:
    sampling = params.rollout.act.model_copy(update={"temperature": temperature})
    rollout = params.rollout.model_copy(update={"act": sampling, "rehearse": sampling})
    changes = {"clip_ratio": 0.1, "micro_batch_rows": micro_rows, "kl_coefficient": kl}
    train = params.train_policy.model_copy(update=changes)
    chosen = params.model_copy(update={"rollout": rollout, "train_policy": train})
    config = compose(verl_overrides(chosen, run_paths, None))
    rows, model = make_rows(), random_model()
    with torch.no_grad():
        old = [log_probs(model, r, temperature) for r in rows]
        reference = [log_probs(random_model(1), r, temperature) for r in rows]
        if moved:  # ratios beyond both bounds, within verl's dual clip at 3, which the method does not have
            generator = torch.Generator().manual_seed(0)
            old = [o + 0.3 * torch.randn(len(o), generator=generator).clamp(-2, 2) for o in old]
    objective = by_hand(model, rows, old, reference, temperature, clip=0.1, kl=kl)
    objective.backward()
    wanted = gradients(model)
    model.zero_grad()
    loss = through_verl(model, rows, old, reference, config, chosen.advantage, micro_rows, engine_class)
    assert loss == pytest.approx(objective.item(), abs=1e-5)
    found = gradients(model)
    assert found.keys() == wanted.keys()
    scale = max(float(g.abs().max()) for g in wanted.values())
    assert scale > 1e-4
    for name, gradient in wanted.items():
        assert torch.allclose(found[name], gradient, atol=1e-5 * max(1.0, scale), rtol=1e-4), name


def conversations() -> list[Row]:
    """Rollouts whose prompts continue each other, one row an output: what a policy saw and wrote."""
    rng = random.Random(1)

    def ids(count: int) -> list[int]:
        return [rng.randrange(7, 500) for _ in range(count)]

    rows = []
    for rollout, (reward, scorable) in enumerate([(1.0, True), (0.2, True), (0.0, False), (0.6, True)]):
        history = ids(20)
        for turn in range(rng.randrange(2, 5)):
            role, output = ("rehearse" if turn % 2 else "act"), ids(rng.randrange(1, 12))
            rows.append(Row("g", role, f"r{rollout}", reward, scorable, list(history), output))
            history += [*output, *ids(3)]
    return rows


def as_shared(rows: list[Row], old: list[torch.Tensor]) -> tuple[list[Row], list[torch.Tensor]]:
    """The same outputs in the rows that the agent loop makes of them."""
    shared, before = [], []
    for rollout in dict.fromkeys(r.rollout for r in rows):
        mine = [(r, o) for r, o in zip(rows, old, strict=True) if r.rollout == rollout]
        outputs = [Output(Role(r.role), 0, r.prompt, r.output, o.tolist(), "") for r, o in mine]
        for chain in chains(outputs):
            members = [outputs[i] for i in chain]
            response, _, log_probs, places = joined(members, trained=True)
            spans = tuple(Span(m.role.value, *place) for m, place in zip(members, places, strict=True))
            of = mine[chain[0]][0]
            row = Row(of.group, of.role, rollout, of.reward, of.scorable, members[0].prompt_ids, response, spans)
            shared.append(row)
            before.append(torch.tensor(log_probs))
    return shared, before


@pytest.mark.parametrize("moved", [False, True], ids=["on policy", "clipped"])
def test_rows_of_several_outputs_give_loss_and_gradient_of_one_row_an_output(
    plugins: Any,
    random_model: Callable[..., Any],
    params: Params,
    run_paths: RunPaths,
    engine_class: Any,
    moved: bool,
) -> None:
    train = params.train_policy.model_copy(update={"clip_ratio": 0.1, "micro_batch_rows": 2})
    chosen = params.model_copy(update={"train_policy": train})
    config = compose(verl_overrides(chosen, run_paths, None))
    rows, model = conversations(), random_model()
    with torch.no_grad():
        old = [log_probs(model, r, 1.0) for r in rows]
        if moved:
            generator = torch.Generator().manual_seed(0)
            old = [o + 0.3 * torch.randn(len(o), generator=generator).clamp(-2, 2) for o in old]
    objective = by_hand(model, rows, old, old, 1.0, clip=0.1, kl=0.0)
    objective.backward()
    wanted = gradients(model)
    model.zero_grad()
    shared, before = as_shared(rows, old)
    assert len(shared) == 4 < len(rows)
    loss = through_verl(model, shared, before, before, config, chosen.advantage, 2, engine_class)
    assert loss == pytest.approx(objective.item(), abs=1e-5)
    found = gradients(model)
    scale = max(float(g.abs().max()) for g in wanted.values())
    assert scale > 1e-4 and found.keys() == wanted.keys()
    for name, gradient in wanted.items():
        assert torch.allclose(found[name], gradient, atol=1e-5 * max(1.0, scale), rtol=1e-4), name


def test_the_plan_of_rows_has_everything_that_could_go_wrong() -> None:
    rows = make_rows()
    assert len({len(r.prompt) for r in rows}) > 5 and len({len(r.output) for r in rows}) > 5
    assert any(not r.scorable for r in rows) and any(r.role == PADDING_ROLE for r in rows)
    advantages = baseline_advantages(rows)
    assert any(a > 0 for a in advantages) and any(a < 0 for a in advantages)
    (alone,) = [a for a, r in zip(advantages, rows, strict=True) if r.group == "h" and r.scorable]
    assert alone == 0
