"""What is run, what is shared, what is kept, and what goes on where it was stopped; with stages that take no time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envace.errors import StageError
from envace.experiment.layout import STATE
from envace.experiment.plan import Plan
from envace.files import read_json, sha256_tree, write_json
from envace.locks import LOCKS, held

Run = Callable[..., dict[str, Any]]
TWO = {"envace": {"label": "A"}, "shared": {"label": "B", "params": {"advantage.baseline": "shared"}}}


def trainings(root: Path, plan: str = "p") -> list[str]:
    return sorted(p.name for p in (root / STATE / plan).iterdir() if p.is_dir())


def test_data_is_made_once_and_a_base_once_a_seed(run: Run, stages: Any, make_plan: Callable[..., Plan]) -> None:
    run(make_plan(TWO))
    assert [stages.count(s) for s in ("fetch_data", "validate_data", "prepare_data")] == [1, 1, 1]
    assert stages.count("build_base_model") == 2 and stages.count("train_policy") == 4
    # a seed: start, ceiling and control once for both arms, and each arm's trained policy
    assert stages.count("evaluation_job") == 2 * (3 + 2)


def test_a_second_run_has_nothing_to_do(run: Run, stages: Any, make_plan: Callable[..., Plan]) -> None:
    first = run(make_plan(TWO))
    stages.ran.clear()
    said: list[str] = []
    assert run(make_plan(TWO), said=said) == first
    assert stages.ran == [] and all("kept" in line for line in said)


def test_seeds_reach_base_training_and_evaluation(run: Run, stages: Any, make_plan: Callable[..., Plan]) -> None:
    run(make_plan(), seeds=[1])
    by_stage = dict(zip([name for name, _ in stages.ran], stages.seen_params, strict=True))
    assert by_stage["build_base_model"]["build_base_model"]["seed"] == 1
    assert by_stage["train_policy"]["train_policy"]["seed"] == 1
    assert (
        by_stage["evaluation_job"]["evaluate_policy"] | {"seed": 1, "repeats": 2}
        == by_stage["evaluation_job"]["evaluate_policy"]
    )


def test_only_what_is_asked_for_runs(run: Run, tmp_path: Path, make_plan: Callable[..., Plan]) -> None:
    record = run(make_plan(TWO), arms=["shared"], seeds=[1])
    assert trainings(tmp_path) == ["shared-1"]
    assert list(record["arms"]) == ["shared"] and list(record["arms"]["shared"]["seeds"]) == ["1"]
    assert record["unfinished"] == ["envace, seed 0", "envace, seed 1", "shared, seed 0"]


def test_a_stopped_experiment_goes_on_with_the_same_training(
    run: Run, stages: Any, tmp_path: Path, make_plan: Callable[..., Plan]
) -> None:
    stages.failing["train_policy"] = 99
    with pytest.raises(StageError):
        run(make_plan())
    folder = tmp_path / STATE / "p" / "envace-0"
    write_json(folder / ".envace/checkpoints/x/step.json", {"step": 3})  # what the killed stage would have left
    stages.failing.clear()
    stages.ran.clear()
    run(make_plan())
    assert read_json(folder / ".envace/checkpoints/x/step.json") == {"step": 3}
    assert stages.count("build_base_model") == 1 and stages.count("fetch_data") == 0


def test_a_training_that_fails_now_and_then_is_tried_again(
    run: Run, stages: Any, make_plan: Callable[..., Plan]
) -> None:
    stages.failing["train_policy"] = 2
    said: list[str] = []
    record = run(make_plan(), seeds=[0], said=said)
    assert list(record["arms"]) == ["envace"] and stages.count("train_policy") == 3
    assert sum("tried again" in line for line in said) == 2


def test_a_base_that_fails_ends_it(run: Run, stages: Any, make_plan: Callable[..., Plan]) -> None:
    stages.failing["build_base_model"] = 1
    with pytest.raises(StageError, match="as asked"):
        run(make_plan())
    assert stages.count("train_policy") == 0


def test_other_params_set_a_training_aside_and_keep_what_they_do_not_touch(
    run: Run, stages: Any, tmp_path: Path, make_plan: Callable[..., Plan]
) -> None:
    run(make_plan(), seeds=[0])
    stages.ran.clear()
    longer = make_plan(common={"train_policy.steps": 33})
    said: list[str] = []
    run(longer, seeds=[0], said=said)
    assert stages.count("train_policy") == 1 and stages.count("build_base_model") == stages.count("fetch_data") == 0
    assert stages.count("evaluation_job") == 1  # of the trained policy; the start's is kept
    (aside,) = [name for name in trainings(tmp_path) if "-was-" in name]
    assert any(aside in line for line in said)
    stages.ran.clear()
    run(make_plan(), seeds=[0])  # and back: the one set aside is taken again
    assert stages.count("train_policy") == 0


def test_another_plan_takes_over_equal_trainings(run: Run, stages: Any, make_plan: Callable[..., Plan]) -> None:
    first = run(make_plan(), name="one")
    stages.ran.clear()
    said: list[str] = []
    second = run(make_plan(TWO), name="two", said=said)
    assert stages.count("train_policy") == 2 and any("copied, one/envace-0 is the same" in line for line in said)
    assert second["arms"]["envace"]["seeds"] == first["arms"]["envace"]["seeds"]


def test_a_base_that_came_out_otherwise_is_trained_on_anew(
    run: Run, stages: Any, tmp_path: Path, make_plan: Callable[..., Plan]
) -> None:
    run(make_plan(), seeds=[0])
    (base,) = (tmp_path / STATE / "shared").glob("base-*")
    write_json(base / "models/base/config.json", {"skill": 0.1, "seed": 0, "steps": 1})
    stages.ran.clear()
    record = run(make_plan(), seeds=[0])
    assert stages.count("train_policy") == 1 and stages.count("evaluation_job") == 2  # start and trained
    assert record["arms"]["envace"]["seeds"]["0"]["policies"]["start"]["true"]["reward"] < 0.2


def test_the_projects_own_outputs_are_not_touched(run: Run, tmp_path: Path, make_plan: Callable[..., Plan]) -> None:
    run(make_plan())
    assert [p.name for p in tmp_path.iterdir()] == [".envace"]
    assert {p.name for p in (tmp_path / ".envace").iterdir()} == {"experiments", "locks"}


def test_a_clean_start_is_the_one_of_least_validation_loss(
    run: Run, stages: Any, make_plan: Callable[..., Plan]
) -> None:
    arm = {"label": "C", "start": "clean", "clean_steps": [20, 50, 90]}
    record = run(make_plan({"clean": arm}), seeds=[0])
    seed = record["arms"]["clean"]["seeds"]["0"]
    assert seed["validation_loss"] == {"20": 0.2, "50": 0.1, "90": 0.5}
    assert stages.count("build_base_model") == 3
    assert set(seed["policies"]) == {"start", "trained"}
    training = next(p for (n, _), p in zip(stages.ran, stages.seen_params, strict=True) if n == "train_policy")
    assert training["train_policy"]["seed"] == 0
    assert seed["policies"]["start"]["true"]["reward"] > 0.7  # the clean skill of the fakes is 0.9


def test_a_simulators_port_is_kept_for_the_next_try(
    run: Run, stages: Any, tmp_path: Path, make_plan: Callable[..., Plan]
) -> None:
    arm = {"label": "G", "params": {"train_policy.method": "grpo"}, "simulator": "world"}
    stages.failing["train_policy"] = 3
    with pytest.raises(StageError):
        run(make_plan({"grpo": arm}), seeds=[0])
    run(make_plan({"grpo": arm}), seeds=[0])
    asked = [
        p["train_policy"]["simulator"]["endpoint"]["base_url"]
        for (name, _), p in zip(stages.ran, stages.seen_params, strict=True)
        if name == "train_policy"
    ]
    port = read_json(tmp_path / STATE / "p/grpo-0/simulator.json")["port"]
    assert len(asked) == 4 and set(asked) == {f"http://127.0.0.1:{port}/v1"}


def test_one_experiment_and_one_trainer_at_a_time(run: Run, tmp_path: Path, make_plan: Callable[..., Plan]) -> None:
    for lock in ("experiment", "gpu"):
        with held(lock, what="x", folder=tmp_path / LOCKS), pytest.raises(StageError, match="is held by"):
            run(make_plan())


def test_the_projects_own_base_is_copied_where_it_is_the_same(
    run: Run, stages: Any, tmp_path: Path, make_plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which one is the same is tested with DVC itself (tests/flows/test_experiment_base.py)."""
    for name in ("base", "references/clean", "references/control"):
        write_json(tmp_path / "models" / name / "config.json", {"skill": 0.3})
    own = (tmp_path / "models/base", tmp_path / "models/references")
    monkeypatch.setattr(
        "envace.experiment.work.project_base",
        lambda root, params: own if root == tmp_path and params.build_base_model.seed == 0 else None,
    )
    run(make_plan())
    assert stages.count("build_base_model") == 1  # of seed 1
    assert sha256_tree(own[0]) == sha256_tree(tmp_path / STATE / "p/envace-0/models/base")
