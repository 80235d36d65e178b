"""Reports about advantages: residues blown up, singletons, silent groups, uneven weights, NaN. Each whole kind."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from envace.algo.advantage import role_wise_advantages
from envace.chat.layout import ChatLayout
from envace.config import Params
from envace.engines.protocol import Generation, GenerationRequest
from envace.types import Rollout, StopReason, Task

Weighting = Literal["output", "rollout"]
WEIGHTINGS: list[Weighting] = ["output", "rollout"]
rewards_of_a_group = st.lists(st.floats(0, 1, width=32), min_size=2, max_size=16)


def advantages(rewards: list[float], dtype: torch.dtype = torch.float32, **more: Any) -> torch.Tensor:
    """Of one group in which every rollout has one act output."""
    count = len(rewards)
    labels = {"groups": ["g"] * count, "roles": ["act"] * count, "rollouts": [f"r{i}" for i in range(count)]}
    scorable = torch.ones(count, dtype=torch.bool)
    return role_wise_advantages(torch.tensor(rewards, dtype=dtype), **labels, scorable=scorable, **more)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_nemo_rl_4161_seven_equal_rewards_and_one_zero_stay_finite_with_std(
    dtype: torch.dtype, weighting: Weighting
) -> None:
    found = advantages([0.35] * 7 + [0.0], dtype, normalize_std=True, weighting=weighting)
    assert found.tolist() == pytest.approx([1 / math.sqrt(7)] * 7 + [-math.sqrt(7)], abs=1e-5)


@given(rewards_of_a_group, st.sampled_from([torch.float32, torch.float64]), st.sampled_from(WEIGHTINGS))
def test_nemo_rl_4161_no_rounding_residue_is_ever_divided_into_something_large(
    rewards: list[float], dtype: torch.dtype, weighting: Weighting
) -> None:
    """No advantage exceeds √(n − 1) standard deviations; with the floor none exceeds its distance / floor."""
    found = advantages(rewards, dtype, normalize_std=True, std_floor=1e-3, weighting=weighting)
    spread = max(rewards) - min(rewards)
    assert bool(torch.isfinite(found).all())
    assert float(found.abs().max()) <= min(math.sqrt(len(rewards)), spread / 1e-3) + 1e-3


@given(st.floats(0, 1, width=32), st.integers(2, 64), st.booleans(), st.sampled_from(WEIGHTINGS))
def test_nemo_rl_4161_equal_rewards_have_no_residue_at_all(
    reward: float, count: int, normalize_std: bool, weighting: Weighting
) -> None:
    found = advantages([reward] * count, normalize_std=normalize_std, weighting=weighting)
    assert found.tolist() == [0.0] * count


@pytest.mark.parametrize("report", ["rllm#924", "rllm#776"])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("normalize_std", [False, True])
def test_rllm_924_and_776_one_rehearse_output_in_a_group_gets_0_not_its_reward(
    report: str, weighting: Weighting, normalize_std: bool
) -> None:
    rewards, scorable = torch.tensor([1.0, 0.0, 1.0, 0.7]), torch.tensor([True, True, True, False])
    roles, rollouts = ["act", "act", "rehearse", "rehearse"], ["r0", "r1", "r0", "r2"]
    options = {"weighting": weighting, "normalize_std": normalize_std}
    found = role_wise_advantages(rewards, ["g"] * 4, roles, rollouts, scorable, **options)  # type: ignore[arg-type]
    assert found[2:].tolist() == [0.0, 0.0]  # alone, since the other one is not scorable
    assert found[0] > 0 > found[1]


def verl_actor(params: Params) -> Any:
    """verl's actor configuration of a training run with the KL term on."""
    with warnings.catch_warnings(action="ignore"):  # verl's, about engines nobody asked for
        import envace.training.plugins  # noqa: F401
    from verl.utils.config import omega_conf_to_dataclass

    from envace.training.overrides import RunPaths, compose, verl_overrides

    train = params.train_policy.model_copy(update={"kl_coefficient": 0.01})
    nowhere = RunPaths(**dict.fromkeys(RunPaths.__dataclass_fields__, Path("/nowhere")))
    composed = compose(verl_overrides(params.model_copy(update={"train_policy": train}), nowhere, None))
    return omega_conf_to_dataclass(composed.actor_rollout_ref.actor)


def test_trl_7068_a_group_of_equal_rewards_has_no_policy_gradient_with_kl_on(params: Params) -> None:
    """Only the KL term is left to move the weights."""
    actor = verl_actor(params)
    import verl.trainer.ppo.core_algos

    verl_algos: Any = verl.trainer.ppo.core_algos

    assert actor.use_kl_loss and actor.kl_loss_coef == 0.01
    mask, old = torch.ones(4, 5), torch.full((4, 5), -1.0)
    log_prob = (old + 0.1 * torch.arange(5)).requires_grad_()
    scalar = advantages([0.6] * 4)
    policy, _ = verl_algos.compute_policy_loss_vanilla(
        old, log_prob, scalar[:, None] * mask, mask, loss_agg_mode=actor.loss_agg_mode, config=actor
    )
    (gradient,) = torch.autograd.grad(policy, log_prob)
    assert policy.item() == 0.0 and float(gradient.abs().max()) == 0.0
    between = verl_algos.kl_penalty(log_prob, old, actor.kl_loss_type)
    divergence = verl_algos.agg_loss(between, mask, actor.loss_agg_mode)
    (pull,) = torch.autograd.grad(divergence, log_prob)
    assert float(pull.abs().max()) > 0


def test_trl_7068_rows_without_a_signal_are_counted(params: Params) -> None:
    from envace.training.labels import LabelledBatch, RowLabel
    from envace.training.step_metrics import advantage_metrics

    rows = [RowLabel("act", f"0#{i}", True, (0, i, 0), "") for i in range(4)]
    batch = LabelledBatch(rows, params.advantage, scalar_advantages=[0.0, 0.0, 0.0, 0.4])
    assert advantage_metrics(batch)["act/advantage_zero_share"] == 0.75


def test_verl_7580_one_row_against_ten_weighs_as_the_stated_weighting_says() -> None:
    rewards = torch.tensor([1.0] + [0.0] * 10)
    groups, roles, rollouts = ["g"] * 11, ["act"] * 11, ["short"] + ["long"] * 10
    by: dict[str, torch.Tensor] = {
        w: role_wise_advantages(rewards, groups, roles, rollouts, torch.ones(11), weighting=w) for w in WEIGHTINGS
    }
    assert by["output"].tolist() == pytest.approx([10 / 11] + [-1 / 11] * 10)  # the mean of eleven outputs
    assert by["rollout"].tolist() == pytest.approx([0.5] + [-0.5] * 10)  # the mean of two rollouts


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 12)), min_size=2, max_size=6))
def test_verl_7580_by_rollout_the_number_of_rows_changes_nothing(rollouts: list[tuple[float, int]]) -> None:
    def found(counts: list[int]) -> list[float]:
        rows = [(r, i) for i, ((r, _), n) in enumerate(zip(rollouts, counts, strict=True)) for _ in range(n)]
        names = [str(i) for _, i in rows]
        made = role_wise_advantages(
            torch.tensor([r for r, _ in rows], dtype=torch.float64),
            ["g"] * len(rows),
            ["act"] * len(rows),
            names,
            torch.ones(len(rows)),
            weighting="rollout",
        ).tolist()
        return [made[names.index(str(i))] for i in range(len(rollouts))]

    assert found([n for _, n in rollouts]) == pytest.approx(found([1] * len(rollouts)), abs=1e-9)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_verl_1581_a_log_probability_that_is_no_number_is_named_and_leaves_no_reward(
    play: Callable[..., Rollout], make_task: Callable[..., Task], layout: ChatLayout, odd: float
) -> None:
    class Broken:
        async def generate(self, request: GenerationRequest) -> Generation:
            ids = layout.encode_output("It is sunny.")
            return Generation(ids, [-0.1] * (len(ids) - 1) + [odd])

    rollout = play(make_task(), Broken())
    assert (rollout.stop_reason, rollout.reward) == (StopReason.ENGINE_FAILURE, None)
    assert "log-probability" in rollout.error and rollout.outputs == []


@given(rewards_of_a_group, st.sampled_from([math.nan, math.inf, -math.inf]), st.booleans(), st.data())
def test_verl_1581_a_reward_that_is_no_number_spoils_nobody_elses_advantage(
    rewards: list[float], odd: float, normalize_std: bool, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(rewards)))
    found = advantages([*rewards[:at], odd, *rewards[at:]], torch.float64, normalize_std=normalize_std).tolist()
    assert found.pop(at) == 0.0
    assert found == pytest.approx(advantages(rewards, torch.float64, normalize_std=normalize_std).tolist(), abs=1e-9)


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_verl_1581_an_update_whose_gradient_is_no_number_is_skipped_and_the_weights_stay(odd: float) -> None:
    """The trainer's own rule: a step that is not finite changes nothing, so the checkpoint stays usable."""
    from types import SimpleNamespace

    from verl.workers.engine.fsdp.transformer_impl import FSDPEngine

    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.tensor([1.0, odd, 1.0])
    engine: Any = object.__new__(FSDPEngine)
    engine.module = torch.nn.ParameterList([weight])
    engine.optimizer = torch.optim.AdamW([weight], lr=0.1)
    engine.optimizer_config = SimpleNamespace(clip_grad=1.0)
    engine._qat_enabled, engine.scaler = False, None
    engine.optimizer_step()
    assert weight.tolist() == [1.0, 1.0, 1.0]
