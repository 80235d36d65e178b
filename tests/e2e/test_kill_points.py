"""Some of the points of `tests.e2e.kill_points`, and the plain peer of verl on the run that they are compared with."""

from __future__ import annotations

from pathlib import Path

import pytest

from envace.config import Params
from tests.e2e.kill_points import STEPS, Reference, differing, draw, project_of, run_reference, try_point
from tests.e2e.plain_trainer import compare
from tests.e2e.project import make_base


@pytest.fixture(scope="module")
def base(params: Params, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(params, tmp_path_factory.mktemp("base") / "base")


@pytest.fixture(scope="module")
def reference(
    request: pytest.FixtureRequest, params: Params, base: Path, tmp_path_factory: pytest.TempPathFactory
) -> Reference:
    """An uninterrupted run, with the old log-probabilities that the test names."""
    return run_reference(tmp_path_factory.mktemp("through") / "project", params, base, request.param)


by_rollout = pytest.mark.parametrize("reference", ["rollout"], indirect=True)
by_trainer = pytest.mark.parametrize("reference", ["trainer"], indirect=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reference", "phase"),
    [("rollout", "update"), ("rollout", "export"), ("trainer", "update")],
    indirect=["reference"],
)
def test_a_training_killed_anywhere_ends_bit_by_bit_as_if_it_had_not_been(
    phase: str, reference: Reference, params: Params, base: Path, tmp_path: Path
) -> None:
    (point,) = draw(reference, 1, seed=7, phases=[phase])
    project = project_of(tmp_path / "project", params, base, reference.old_log_probs)
    outcome = try_point(point, reference, project)
    assert outcome.difference is None, outcome


@pytest.mark.slow
@by_trainer  # as in the plain loop, the policy is compared with itself
def test_verl_trains_what_a_plain_loop_trains(reference: Reference) -> None:
    """The same tasks, seeds and recipe in plain torch: the same words at every step, the same weights at the end."""
    found = compare(reference.project)
    assert len(found.steps) == STEPS and sum(step.gradient_norm > 0 for step in found.steps) > STEPS // 2
    for step in found.steps:
        assert step.same == step.rollouts and step.reward == pytest.approx(step.verl_reward, abs=1e-9)
    assert found.moved > 1e-3 and found.apart < 1e-5


@pytest.mark.slow
@by_trainer
def test_another_recipe_is_seen(reference: Reference) -> None:
    """verl's warm-up begins at 0: a loop whose first update counts ends elsewhere."""
    found = compare(reference.project, ["update-at-once"])
    assert found.apart > 1e-4


@pytest.mark.slow
@by_rollout
def test_a_difference_is_found_and_measured(reference: Reference, tmp_path: Path) -> None:
    import shutil

    import torch
    from safetensors.torch import load_file, save_file

    other = Path(shutil.copytree(reference.project, tmp_path / "other", symlinks=True))
    assert list(differing(reference.project, other)) == []
    path = other / "models/policy/model.safetensors"
    weights = load_file(path)
    name = next(iter(weights))
    save_file({**weights, name: weights[name] + torch.full_like(weights[name], 0.5)}, path, {"format": "pt"})
    (other / "reports/training/rollouts.parquet").write_bytes(b"")
    found = list(differing(reference.project, other))
    assert len(found) == 2 and "rollouts.parquet" in found[0] and "max difference 5.0e-01" in found[1]
