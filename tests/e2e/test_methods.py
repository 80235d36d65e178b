"""Each method on the real verl trainer, two steps: what is trained, by whom the calls are answered, and that the same
seed gives the same policy."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from envace.config import Params
from envace.rollout.records import read_rollouts
from tests.e2e.project import (
    STEPS,
    TIMEOUT_S,
    changed,
    finish,
    left_over,
    make_project,
    make_tasks,
    metrics_of,
    start,
)
from tests.e2e.test_short_training import base
from tests.world_simulator import world_simulator

__all__ = ["base"]

Train = Callable[..., tuple[Path, str]]


@pytest.fixture
def train(params: Params, base: Path, tmp_path: Path) -> Train:
    """Runs a training with changes of its train_policy section; gives its project and what it said.

    `rollout`: changes of that section. `stop_after`: it is killed once, when that step's checkpoint is sealed, and run
    again.
    """

    def run(name: str, stop_after: int = 0, rollout: dict[str, Any] | None = None, **changes: Any) -> tuple[Path, str]:
        raw = changed(params, tasks_per_step=2, **changes)
        raw["rollout"] |= rollout or {}
        project = make_project(tmp_path / name, base, raw, make_tasks(validation=3))
        if stop_after:
            kill_once(project, f"global_step_{stop_after}/sealed.json")
        said = finish(start(project))
        assert left_over(project) == []
        return project, said

    return run


def kill_once(project: Path, there: str) -> None:
    """Start the training, and kill it as soon as its checkpoints hold a file."""
    process = start(project)
    deadline = time.monotonic() + TIMEOUT_S
    while not list(project.glob(f".envace/checkpoints/*/checkpoints/{there}")):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0]
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def trained(project: Path) -> list[dict[str, Any]]:
    return [line for line in metrics_of(project) if line["phase"] == "train"]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


@pytest.mark.slow
def test_grpo_trains_acts_alone_on_a_simulators_answers(train: Train, params: Params) -> None:
    simulator = params.train_policy.simulator.model_dump()
    with world_simulator() as server:
        simulator["endpoint"] |= {"base_url": server.base_url, "model": "world"}
        project, _ = train("grpo", method="grpo", simulator=simulator)
        assert server.asked > 1
    rows = [r for r in read_rollouts(project / "reports/training/rollouts.parquet") if r["phase"] == "train"]
    answered = [o for r in rows for o in r["outputs"] if o["role"] == "rehearse"]
    assert answered and all(o["shared_tokens"] is None for o in answered)  # no tokens, so no training row
    assert not any(r["stop_reason"] == "engine_failure" for r in rows)
    assert len(trained(project)) == STEPS
    for line in trained(project):
        assert "rehearse/advantage_abs_mean" not in line and line["act/outputs"] > 0


@pytest.mark.slow
def test_per_role_trains_two_policies_each_on_its_own_rows(train: Train, base: Path) -> None:
    project, _ = train("per_role", method="per_role")
    lines = trained(project)
    assert len(lines) == STEPS and any(line["rehearse/outputs"] for line in lines)
    assert any(line["update/grad_norm"] > 0 for line in lines)
    assert any(line.get("rehearse_update/grad_norm", 0) > 0 for line in lines)
    start_weights, acting = weights(base), weights(project / "models/policy")
    rehearsing = weights(project / "models/trained/last-rehearse")
    for one, other in ((start_weights, acting), (start_weights, rehearsing), (acting, rehearsing)):
        assert max(float((one[n] - other[n]).abs().max()) for n in one) > 1e-6


@pytest.mark.slow
def test_per_role_resumes_both_policies(train: Train, base: Path) -> None:
    """A step, killed, two more: weights and optimizers of both are those of three steps in one go.

    The learning rate of the first step is 0, and its gradient moves the weights in the second one, through the
    optimizer's memory of it: that is what must have been kept.
    """
    changes: dict[str, Any] = {"method": "per_role", "steps": 3, "warmup_steps": 3, "checkpoint_every": 1}
    whole, _ = train("whole", **changes)
    resumed, said = train("resumed", stop_after=1, **changes)
    assert "resuming after step 1 of 3" in said
    assert [line["step"] for line in trained(resumed)] == [1, 2, 3]
    assert trained(whole) == trained(resumed)
    assert trained(resumed)[0]["rehearse_update/grad_norm"] > 0
    start_weights = weights(base)
    for name in ("policy", "trained/last-rehearse", "trained/best", "trained/best-rehearse"):
        one, other = weights(whole / "models" / name), weights(resumed / "models" / name)
        assert max(float((one[n] - other[n]).abs().max()) for n in one) < 1e-6, name
    for name in ("policy", "trained/last-rehearse"):
        moved = weights(resumed / "models" / name)
        assert max(float((moved[n] - start_weights[n]).abs().max()) for n in moved) > 1e-6, name


@pytest.mark.slow
@pytest.mark.parametrize("by", ["rollout", "trainer"])
def test_one_seed_gives_one_policy(train: Train, by: str) -> None:
    """Of both kinds of old log-probabilities: what is decoded side by side changes no bit of the rollout's either."""
    one, _ = train("one", old_log_probs=by)
    other, _ = train("other", old_log_probs=by)
    rollouts = [p / "reports/training/rollouts.parquet" for p in (one, other)]
    assert rollouts[0].read_bytes() == rollouts[1].read_bytes()
    assert metrics_of(one) == metrics_of(other)
    first, second = weights(one / "models/policy"), weights(other / "models/policy")
    assert first.keys() == second.keys() and all(torch.equal(first[n], second[n]) for n in first)


@pytest.mark.slow
def test_steps_without_any_reward_train_nothing_and_the_run_goes_on(train: Train, base: Path) -> None:
    """No rollout can be scored: each is stopped at once by its deadline."""
    project, _ = train("none", old_log_probs="trainer", rollout={"deadline_s": 0.001})
    rows = read_rollouts(project / "reports/training/rollouts.parquet")
    assert rows and all(r["reward"] is None and r["stop_reason"] == "engine_failure" for r in rows)
    assert [line["step"] for line in trained(project)] == list(range(1, STEPS + 1))
    assert all(line["update/grad_norm"] == 0 for line in trained(project))
    before, after = weights(base), weights(project / "models/policy")
    assert max(float((before[n] - after[n]).abs().max()) for n in before) < 1e-4  # by weight decay alone
