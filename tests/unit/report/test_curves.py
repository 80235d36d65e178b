"""Curves from rollouts: what is averaged, what is not, and the scripts of samples."""

from __future__ import annotations

from typing import Any

import pytest

from envace.report.curves import curves
from envace.report.transcripts import samples, script


def row(step: int, reward: float | None, phase: str = "train", **fields: Any) -> dict[str, Any]:
    roles = fields.pop("roles", ["act"])
    outputs = [{"role": r, "turn_index": 0, "text": f"{r}{i}"} for i, r in enumerate(roles)]
    known = {"task_id": "t", "rollout_index": 0, "success": reward == 1.0, "stop_reason": "completed", "turns": []}
    return {"step": step, "phase": phase, "reward": reward, "outputs": outputs, **known, **fields}


def test_a_step_is_the_mean_of_its_scorable_rollouts() -> None:
    found = curves([row(2, 1.0), row(2, 0.0), row(2, None, stop_reason="engine_failure"), row(1, 0.5)])
    assert [(p.step, p.mean, p.rollouts) for p in found.reward] == [(1, 0.5, 1), (2, 0.5, 2)]
    assert found.reward[0].error == 0.0 and found.reward[1].error == pytest.approx(0.5)
    assert found.unscorable == 1


def test_a_step_without_a_reward_has_no_point_rather_than_0() -> None:
    found = curves([row(1, None), row(2, 0.5)])
    assert [p.step for p in found.reward] == [2]


def test_validation_stands_apart() -> None:
    found = curves([row(1, 0.0), row(1, 1.0, "validation"), row(0, 0.5, "validation")])
    assert [(p.step, p.mean) for p in found.reward] == [(1, 0.0)]
    assert [(p.step, p.mean) for p in found.validation_reward] == [(0, 0.5), (1, 1.0)]
    assert [(p.step, p.mean) for p in found.validation_success] == [(0, 0.0), (1, 1.0)]


def test_shares_of_stop_reasons_and_outputs_by_role() -> None:
    rows = [row(1, 1.0, roles=["act", "rehearse", "act"]), row(1, 0.0, stop_reason="max_outputs")]
    found = curves(rows)
    assert found.stop_reasons == {1: {"completed": 0.5, "max_outputs": 0.5}}
    assert found.outputs == {1: {"act": 1.5, "rehearse": 0.5}}


def test_the_reward_of_a_role_counts_a_rollout_once_for_each_of_its_outputs() -> None:
    rows = [row(1, 1.0, roles=["act", "rehearse", "act"]), row(1, 0.0), row(1, None, roles=["rehearse"])]
    found = curves([*rows, row(2, 0.5)])
    assert [(p.step, round(p.mean, 3), p.rollouts) for p in found.reward_by_role["act"]] == [(1, 0.667, 2), (2, 0.5, 1)]
    assert [(p.step, p.mean) for p in found.reward_by_role["rehearse"]] == [(1, 1.0)]


def test_nothing_at_all() -> None:
    found = curves([])
    assert found.reward == [] and found.stop_reasons == {} and samples([]) == []


def test_a_script_keeps_the_order_of_both_roles_and_of_other_answers() -> None:
    observations = [{"source": "code", "content": "refused"}, {"source": "rehearsed", "content": "r2"}]
    turn = {"user": "hello", "steps": [{"observations": observations}]}
    said = list(script(row(1, 1.0, roles=["act", "act", "rehearse", "act"], turns=[turn])))
    assert [(line.speaker, line.text) for line in said] == [
        ("user", "hello"),
        ("checked by code", "refused"),
        ("act", "act0"),
        ("act", "act1"),
        ("rehearse", "rehearse2"),
        ("act", "act3"),
    ]


def test_samples_are_the_best_and_the_worst_of_the_last_step_in_which_both_roles_were_played() -> None:
    rows = [row(9, 1.0, "validation"), row(0, 1.0, roles=["rehearse"]), row(5, None, roles=["rehearse"])]
    rows += [row(5, r, task_id=f"t{r}", roles=["act", "rehearse"]) for r in (0.2, 0.9, 0.4)]
    rows += [row(5, 1.0, task_id="plain")]
    titles = [s.title.partition(":")[0] for s in samples(rows)]
    assert titles == ["train at step 5, task t0.9", "train at step 5, task t0.2"]
    assert [s.title.partition(":")[0] for s in samples(rows[:1])] == ["validation at step 9, task t"]
