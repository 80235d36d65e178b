"""The figures of a step: means over what can be scored, shares over everything, nothing invented where nothing is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envace.training.step_metrics import rollout_metrics
from envace.types import StopReason


def record(
    reward: float | None,
    stop: str = "completed",
    outputs: list[tuple[str, str]] | None = None,
    verdicts: dict[str, str] | None = None,
) -> dict[str, Any]:
    counts = {"prompt_tokens": 40, "shared_tokens": 30}
    written = [{"role": role, "text": text, "tokens": len(text), **counts} for role, text in outputs or []]
    turns = json.dumps([{"verdicts": verdicts or {}}])
    return {"reward": reward, "success": reward == 1.0, "stop_reason": stop, "outputs": written, "turns": turns}


def test_means_are_over_scorable_rollouts_and_shares_over_all() -> None:
    metrics = rollout_metrics([record(1.0), record(0.5), record(None, "engine_failure"), record(0.0, "invalid_call")])
    assert metrics["reward/mean"] == 0.5 and metrics["reward/success"] == pytest.approx(1 / 3, abs=1e-6)
    assert metrics["rollouts"] == 4 and metrics["unscorable_share"] == 0.25
    assert metrics["stop/engine_failure"] == metrics["stop/invalid_call"] == 0.25 and metrics["stop/completed"] == 0.5
    assert sum(v for k, v in metrics.items() if k.startswith("stop/")) == 1
    assert {k for k in metrics if k.startswith("stop/")} == {f"stop/{r.value}" for r in StopReason}


def test_figures_are_by_role() -> None:
    outputs = [("act", "abcd"), ("rehearse", "{}"), ("rehearse", "oops"), ("act", "ab")]
    metrics = rollout_metrics([record(1.0, outputs=outputs), record(None, outputs=outputs[:1])], prefix="validation/")
    assert metrics["validation/act/outputs"] == 3 and metrics["validation/rehearse/outputs"] == 2
    assert metrics["validation/act/tokens_mean"] == pytest.approx(10 / 3, abs=1e-6)
    assert metrics["validation/rehearse/malformed_share"] == 0.5


def test_the_reward_of_a_role_is_the_mean_over_its_outputs() -> None:
    act, rehearse = ("act", "a"), ("rehearse", "{}")
    made = [
        record(1.0, outputs=[act, rehearse, act]),
        record(0.0, outputs=[act]),
        record(None, outputs=[act, rehearse]),
    ]
    metrics = rollout_metrics(made)
    assert metrics["act/reward_mean"] == pytest.approx(2 / 3, abs=1e-6) and metrics["rehearse/reward_mean"] == 1.0
    assert "act/reward_mean" not in rollout_metrics([record(None, outputs=[act])])


def test_what_has_nothing_to_average_is_left_out() -> None:
    metrics = rollout_metrics([record(None, "engine_failure"), record(None, "cancelled")])
    assert "reward/mean" not in metrics and "rehearse/malformed_share" not in metrics
    assert metrics["unscorable_share"] == 1.0 and metrics["act/outputs"] == 0
    assert rollout_metrics([]) == {}


def test_the_shared_prefix_is_a_share_of_the_prompt_tokens_of_a_role() -> None:
    one = record(1.0, outputs=[("act", "a"), ("rehearse", "{}")])
    one["outputs"][1] |= {"prompt_tokens": 120, "shared_tokens": 110}
    metrics = rollout_metrics([one, record(1.0, outputs=[("rehearse", "{}")])])
    assert metrics["engine/shared_prefix_share"] == (110 + 30) / (120 + 40)
    assert metrics["engine/act_shared_prefix_share"] == 0.75


def test_unknown_verdicts_are_a_share_of_all_verdicts() -> None:
    made = [record(1.0, verdicts={"a": "pass", "b": "fail"}), record(None, verdicts={"a": "unknown", "b": "pass"})]
    assert rollout_metrics(made)["judge/unknown_fraction"] == 0.25
    assert "judge/unknown_fraction" not in rollout_metrics([record(1.0)])
