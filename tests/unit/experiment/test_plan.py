"""Plans: the shipped ones hold, wrong ones are refused with the reason, changes reach the params."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from envace.errors import ConfigError
from envace.experiment.merging import SIMULATOR_AT, arm_params, with_simulator
from envace.experiment.plan import PLANS, Plan, chosen, load_plan, plan_path
from envace.training.overrides import RunPaths, params_faults, verl_overrides

GOOD: dict[str, Any] = {
    "title": "T",
    "question": "Q",
    "seeds": [0, 1],
    "arms": {"one": {"label": "L"}, "two": {"label": "M"}},
}


def written(folder: Path, raw: Any) -> Path:
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    return path


SHIPPED = sorted(p.stem for p in (Path(__file__).resolve().parents[3] / PLANS).glob("*.yaml"))


def test_the_plans_are_these() -> None:
    assert SHIPPED == ["clean-start", "learning", "methods"]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_plans_fit_the_shipped_params(name: str, project_root: Path, raw: dict[str, Any]) -> None:
    plan = load_plan(plan_path(name, project_root))
    assert len(plan.seeds) >= 3 and plan.evaluation.tasks >= 100 and plan.evaluation.samples >= 4
    assert plan.resamples >= 10_000
    for arm in plan.arms:
        for seed in plan.seeds:
            params = arm_params(raw, plan, arm, seed)
            assert params.train_policy.seed == params.build_base_model.seed == params.evaluate_policy.seed == seed
            assert params.evaluate_policy.repeats == plan.evaluation.samples
            assert params.fetch_data.sample.heldout_tasks >= plan.evaluation.tasks


@pytest.mark.parametrize("name", SHIPPED)
def test_every_arm_of_a_shipped_plan_can_be_trained(name: str, project_root: Path, raw: dict[str, Any]) -> None:
    """What a training would refuse only once its base policy is built."""
    plan = load_plan(plan_path(name, project_root))
    paths = RunPaths(*[project_root / "nowhere"] * 6)
    for arm in plan.arms:
        params = arm_params(raw, plan, arm, plan.seeds[0])
        assert list(params_faults(params)) == [], arm
        assert verl_overrides(params, paths, None), arm


def test_the_first_arm_of_learning_is_what_is_shipped(project_root: Path, raw: dict[str, Any]) -> None:
    plan = load_plan(plan_path("learning", project_root))
    mine = arm_params(raw, plan, "envace", 0).model_dump(mode="json")
    mine["train_policy"]["validate_every"] = raw["train_policy"]["validate_every"]
    mine["evaluate_policy"]["repeats"] = raw["evaluate_policy"]["repeats"]
    assert mine == raw


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"extra": 1}, "extra: Extra inputs"),
        ({"arms": {}}, "arms"),
        ({"arms": {"one": {"label": "L", "parms": {}}}}, "arms.one.parms"),
        ({"arms": {"a b": {"label": "L"}}}, "arms.a b"),
        ({"arms": {"start": {"label": "L"}}}, "cannot be called"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [1, 1]}, "one stands twice"),
        ({"resamples": 100}, "resamples"),
        ({"evaluation": {"tasks": 1}}, "evaluation.tasks"),
        ({"compare": [{"arm": "one", "against": "none"}]}, "two different arms"),
        ({"compare": [{"arm": "one", "against": "one"}]}, "two different arms"),
        ({"arms": {"one": {"label": "L", "clean_steps": [3]}}}, "start: clean"),
        (
            {
                "common": {"build_base_model.clean.steps": 2},
                "arms": {"one": {"label": "L", "start": "clean", "clean_steps": [3]}},
            },
            "exclude each other",
        ),
    ],
)
def test_a_wrong_plan_is_refused_and_says_where(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_plan(written(tmp_path, GOOD | change))
    assert "plan.yaml" in str(error.value) and told in str(error.value)


def test_a_plan_that_is_no_mapping_or_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a mapping"):
        load_plan(written(tmp_path, [1]))
    (tmp_path / PLANS).mkdir()
    written(tmp_path / PLANS, GOOD)
    with pytest.raises(ConfigError, match=r"no such plan; those in experiments/ are: plan"):
        plan_path("learnin", tmp_path)


def test_changes_go_by_dotted_key_and_strangers_are_refused(
    make_plan: Callable[..., Plan], raw: dict[str, Any]
) -> None:
    arm = {"label": "L", "params": {"train_policy.steps": 7, "rollout.act.temperature": 1.3}}
    plan = make_plan({"a": arm}, common={"train_policy.steps": 5, "train_policy.validate_every": 5})
    params = arm_params(raw, plan, "a", 4)
    assert (params.train_policy.steps, params.train_policy.validate_every, params.rollout.act.temperature) == (
        7,
        5,
        1.3,
    )
    assert raw["train_policy"]["steps"] != 7
    for key, told in (
        ("train_policy.stepz", "no such key"),
        ("nowhere.at.all", "no such key"),
        ("rollout.act", "section"),
    ):
        wrong = make_plan({"a": {"label": "L", "params": {key: {"x": 1}}}})
        with pytest.raises(ConfigError, match=told):
            arm_params(raw, wrong, "a", 0)
    with pytest.raises(ConfigError, match=r"train_policy\.steps"):
        arm_params(raw, make_plan({"a": {"label": "L", "params": {"train_policy.steps": 0}}}), "a", 0)


def test_a_simulator_stands_in_the_params_by_a_placeholder(make_plan: Callable[..., Plan], raw: dict[str, Any]) -> None:
    plan = make_plan({"a": {"label": "L", "params": {"train_policy.method": "grpo"}, "simulator": "world"}})
    params = arm_params(raw, plan, "a", 0)
    assert params.train_policy.simulator.endpoint.base_url == SIMULATOR_AT
    real = with_simulator(params, "http://127.0.0.1:4321/v1")
    assert real.train_policy.simulator.endpoint.base_url == "http://127.0.0.1:4321/v1"
    with pytest.raises(ConfigError, match="method grpo only"):
        arm_params(raw, make_plan({"a": {"label": "L", "simulator": "world"}}), "a", 0)


def test_arms_and_seeds_can_be_chosen(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan({"a": {"label": "L"}, "b": {"label": "L"}})
    assert chosen(plan, [], []) == (["a", "b"], [0, 1])
    assert chosen(plan, ["b"], [1]) == (["b"], [1])
    for arms, seeds in ((["c"], []), ([], [7])):
        with pytest.raises(ConfigError, match="not in this plan"):
            chosen(plan, arms, seeds)
