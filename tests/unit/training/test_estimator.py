"""The estimator as verl calls it: role-wise advantages on every token of the rows that count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from envace.algo.advantage import role_wise_advantages
from envace.config import AdvantageParams
from envace.errors import TrainingError
from envace.training.labels import PADDING_ROLE, LabelledBatch, RowLabel, Span, current_labels, labelled
from envace.training.step_metrics import advantage_metrics

Plan = list[tuple[str, str, str, float, bool, int]]  # group, role, rollout, reward, scorable, tokens
WIDTH = 6


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A batch of rows as verl hands them over: both roles, unscorable rollouts, padding rows."""
    plan: Plan = []
    for group in range(draw(st.integers(1, 2))):
        for rollout in range(draw(st.integers(1, 3))):
            reward, scorable = draw(st.floats(0, 1, width=32)), draw(st.integers(0, 4)) > 0
            for role in draw(st.lists(st.sampled_from(["act", "rehearse"]), min_size=1, max_size=4)):
                plan.append((f"g{group}", role, f"{group}#{rollout}", reward, scorable, draw(st.integers(1, WIDTH))))
    plan += [("pad1", PADDING_ROLE, "0#0", 0.0, True, 1)] * draw(st.integers(0, 3))
    return draw(st.permutations(plan))


def estimate(plan: Plan, params: AdvantageParams) -> tuple[torch.Tensor, torch.Tensor, LabelledBatch]:
    """Advantages and mask of a plan through verl's own compute_advantage."""
    from verl import DataProto
    from verl.trainer.ppo.ray_trainer import compute_advantage

    rewards, mask = torch.zeros(len(plan), WIDTH), torch.zeros(len(plan), WIDTH)
    for i, (_, role, _, reward, scorable, tokens) in enumerate(plan):
        rewards[i, tokens - 1] = reward if scorable else 0.0
        mask[i, :tokens] = float(scorable and role != PADDING_ROLE)
    data = DataProto.from_single_dict({"token_level_rewards": rewards, "response_mask": mask})
    data.non_tensor_batch["uid"] = np.array([p[0] for p in plan], dtype=object)
    batch = LabelledBatch([RowLabel(p[1], p[2], p[4], (0, 0, i), "") for i, p in enumerate(plan)], params)
    with labelled(batch):
        data = compute_advantage(data, adv_estimator="role_wise_grpo")  # type: ignore[arg-type]
    assert torch.equal(data.batch["returns"], data.batch["advantages"])
    return data.batch["advantages"], mask, batch


@settings(deadline=None, max_examples=150)
@given(plans(), st.sampled_from(["output", "rollout"]), st.booleans(), st.sampled_from(["role", "shared"]))
def test_equals_role_wise_advantages_on_every_token(
    plugins: Any, plan: Plan, weighting: Any, normalize_std: bool, baseline: Any
) -> None:
    params = AdvantageParams(baseline=baseline, weighting=weighting, normalize_std=normalize_std, std_floor=1e-3)
    found, mask, batch = estimate(plan, params)
    counts = torch.tensor([scorable and role != PADDING_ROLE for _, role, _, _, scorable, _ in plan])
    scalar = role_wise_advantages(
        torch.tensor([p[3] for p in plan]),
        [p[0] for p in plan],
        [p[1] for p in plan],
        [p[2] for p in plan],
        counts,
        baseline=baseline,
        weighting=weighting,
        normalize_std=normalize_std,
        std_floor=1e-3,
    )
    assert torch.allclose(found, scalar[:, None] * mask, atol=1e-6)
    assert batch.scalar_advantages == pytest.approx(scalar.tolist())
    assert bool((found[~counts] == 0).all())


@settings(deadline=None, max_examples=100)
@given(plans(), st.randoms(use_true_random=False))
def test_outputs_that_share_a_row_weigh_as_rows_of_their_own(plugins: Any, plan: Plan, rng: Any) -> None:
    """What verl makes of a row is the mean of (advantage x something) over its trained tokens; then it sums rows."""
    from envace.training.estimator import role_wise_grpo

    params = AdvantageParams(baseline="role", weighting="output", normalize_std=False, std_floor=1e-3)
    alone, mask, separate = estimate(plan, params)
    something = torch.tensor([[rng.uniform(-1, 1) for _ in range(WIDTH)] for _ in plan])
    wanted = ((alone * something).sum(-1) / mask.sum(-1).clamp(min=1)).sum()
    rows: dict[Any, list[int]] = {}
    for i, (_, role, rollout, *_) in enumerate(plan):
        rows.setdefault(i if role == PADDING_ROLE else rollout, []).append(i)
    labels, masks, things, owners = [], [], [], []
    for members in rows.values():
        spans, row_mask, thing = [], [0.0], [0.0]  # a token between outputs, which nobody sampled
        for i in members:
            tokens = plan[i][5]
            spans.append(Span(plan[i][1], len(row_mask), len(row_mask) + tokens))
            row_mask += [*mask[i, :tokens].tolist(), 0.0]
            thing += [*something[i, :tokens].tolist(), 9.0]
        first = plan[members[0]]
        labels.append(RowLabel(first[1], first[2], first[4], (0, 0, members[0]), "", several=tuple(spans)))
        masks.append(torch.tensor(row_mask))
        things.append(torch.tensor(thing))
        owners.append(members)
    pad = torch.nn.utils.rnn.pad_sequence
    whole, thing = pad(masks, batch_first=True), pad(things, batch_first=True)
    rewards = torch.zeros_like(whole)
    rewards[:, -1] = torch.tensor([plan[m[0]][3] if plan[m[0]][4] else 0.0 for m in owners])
    batch = LabelledBatch(labels, params)
    with labelled(batch):
        found, _ = role_wise_grpo(rewards, whole, np.array([plan[m[0]][0] for m in owners], dtype=object))
    got = ((found * thing).sum(-1) / whole.sum(-1).clamp(min=1)).sum()
    assert got.item() == pytest.approx(wanted.item(), abs=1e-5)
    flat = [i for members in owners for i in members]
    assert batch.scalar_advantages == pytest.approx([separate.scalar_advantages[i] for i in flat], abs=1e-6)
    assert advantage_metrics(batch) == pytest.approx(
        advantage_metrics(separate)
        | {"rows/all": len(rows), "rows/unscorable": sum(not x.scorable and x.role != PADDING_ROLE for x in labels)},
        abs=2e-6,
    )


def test_an_update_divides_by_the_outputs_that_count(plugins: Any) -> None:
    from envace.training.trainer import MeanOverCounted

    class Workers:
        def update_actor(self, batch: Any) -> Any:
            return batch.extra_info["global_batch_size"]

    rows = [RowLabel("act", "0#0", scorable, (0, 0, 0), "") for scorable in (True, True, False)]
    rows += [RowLabel(PADDING_ROLE, "0#0", True, (0, 0, 0), "")] * 2
    batch = SimpleNamespace(extra_info={"global_batch_size": len(rows)})
    assert MeanOverCounted(Workers(), rows).update_actor(batch) == 2
    several = RowLabel("act", "0#1", True, (0, 1, 0), "", several=(Span("act", 0, 2), Span("rehearse", 3, 5)))
    assert MeanOverCounted(Workers(), [*rows, several]).update_actor(batch) == 4
    assert MeanOverCounted(Workers(), rows[2:]).update_actor(batch) == 1  # nothing to learn from, nothing divided by 0


def test_without_labels_the_estimator_refuses(plugins: Any) -> None:
    from envace.training.estimator import role_wise_grpo

    with pytest.raises(TrainingError, match="trainer_mode"):
        role_wise_grpo(torch.zeros(2, 3), torch.ones(2, 3), np.array(["a", "b"]))


def test_labels_of_another_batch_are_refused(plugins: Any, params: Any) -> None:
    from envace.training.estimator import role_wise_grpo

    batch = LabelledBatch([RowLabel("act", "0#0", True, (0, 0, 0), "")], params.advantage)
    with labelled(batch), pytest.raises(TrainingError):
        role_wise_grpo(torch.zeros(2, 3), torch.ones(2, 3), np.array(["a", "b"]))


def test_labels_are_gone_when_the_batch_is_done_even_after_an_error(params: Any) -> None:
    batch = LabelledBatch([], params.advantage)
    with pytest.raises(KeyError), labelled(batch):
        assert current_labels() is batch
        raise KeyError
    assert current_labels() is None


def test_advantage_metrics_are_by_role_and_count_what_is_left_out(plugins: Any, params: Any) -> None:
    plan: Plan = [
        ("g", "act", "0#0", 1.0, True, 2),
        ("g", "act", "0#1", 0.0, True, 2),
        ("h", "act", "1#0", 1.0, True, 2),
        ("g", "rehearse", "0#0", 1.0, True, 1),
        ("h", "rehearse", "1#1", 0.0, False, 1),
        ("pad1", PADDING_ROLE, "0#0", 0.0, True, 1),
    ]
    metrics = advantage_metrics(estimate(plan, params.advantage)[2])
    assert metrics == {
        "act/advantage_abs_mean": pytest.approx(1 / 3, abs=1e-6),
        "act/advantage_zero_share": pytest.approx(1 / 3, abs=1e-6),
        "rehearse/advantage_abs_mean": 0.0,
        "rehearse/advantage_zero_share": 1.0,
        "rows/all": 6.0,
        "rows/padding": 1.0,
        "rows/unscorable": 1.0,
    }
