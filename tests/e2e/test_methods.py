"""Each method on the real verl trainer, two steps: what is trained, by whom the calls are answered, and that the same
seed gives the same policy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from envace.config import Params, parse_params
from envace.rollout.records import read_rollouts
from tests.e2e.test_short_training import STEPS, base, changed, finish, left_over, make_project, metrics_of, start
from tests.world_simulator import world_simulator

__all__ = ["base"]

Train = Callable[..., tuple[Path, str]]


@pytest.fixture
def train(params: Params, base: Path, tmp_path: Path) -> Train:
    """Runs a training with changes of its train_policy section; gives its project and what it said."""

    def run(name: str, **changes: Any) -> tuple[Path, str]:
        project = make_project(tmp_path / name, params, base)
        raw = changed(params)
        raw["train_policy"] |= {"tasks_per_step": 2, **changes}
        parse_params(raw, name)
        (project / "params.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
        said = finish(start(project))
        assert left_over(project) == []
        return project, said

    return run


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
def test_one_seed_gives_one_policy(train: Train) -> None:
    """With old log-probabilities by the trainer nothing that was decoded side by side enters the update but its ids."""
    one, _ = train("one", old_log_probs="trainer")
    other, _ = train("other", old_log_probs="trainer")
    rollouts = [p / "reports/training/rollouts.parquet" for p in (one, other)]
    assert rollouts[0].read_bytes() == rollouts[1].read_bytes()
    assert metrics_of(one) == metrics_of(other)
    first, second = weights(one / "models/policy"), weights(other / "models/policy")
    assert first.keys() == second.keys() and all(torch.equal(first[n], second[n]) for n in first)
