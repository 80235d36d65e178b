"""A plan (experiments/*.yaml): which arms, which seeds, how they are evaluated, and what is compared with what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from envace.errors import ConfigError
from envace.params_basis import Count, Section

PLANS = Path("experiments")
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
START = "start"
"""What an arm may be compared with besides other arms: the policy that it starts from."""
SEEDED = ["train_policy.seed", "build_base_model.seed", "evaluate_policy.seed"]


class Arm(Section):
    """One setting: what it changes in params.yaml, by dotted key.

    start: `base`, or `clean`, the reference policy before faults were taught (models/references/clean).
    clean_steps: where given, a base is built for each number of clean steps, and the arm starts from the one with the
    lowest validation loss.
    simulator: `world` answers the calls of method grpo by the sample's own code.
    """

    label: str
    params: dict[str, Any] = Field(default_factory=dict)
    start: Literal["base", "clean"] = "base"
    clean_steps: list[Count] = Field(default_factory=list)
    simulator: Literal["world"] | None = None


class EvaluationPlan(Section):
    """The first `tasks` tasks of `split`, `samples` rollouts each: tools run by code, and rehearsed."""

    tasks: Annotated[int, Field(ge=2)] = 120
    samples: Count = 4
    split: Literal["heldout", "hard"] = "heldout"


class Comparison(Section):
    """The trained policy of `arm` minus that of `against`, task by task, in each seed."""

    arm: str
    against: str


class Plan(Section):
    """All of a plan. `common` changes params.yaml for every arm; a seed goes to the keys in `seeded`."""

    title: str
    question: str
    seeds: Annotated[list[int], Field(min_length=1)]
    seeded: list[str] = SEEDED
    evaluation: EvaluationPlan = EvaluationPlan()
    resamples: Annotated[int, Field(ge=10_000)] = 20_000
    common: dict[str, Any] = Field(default_factory=dict)
    arms: Annotated[dict[Name, Arm], Field(min_length=1)]
    compare: list[Comparison] = Field(default_factory=list)

    @model_validator(mode="after")
    def _hangs_together(self) -> Plan:
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError("seeds: one stands twice")
        if START in self.arms:
            raise ValueError(f"an arm cannot be called {START!r}")
        for each in self.compare:
            strangers = {each.arm, each.against} - self.arms.keys()
            if strangers or each.arm == each.against:
                raise ValueError(f"compare: {each.arm} with {each.against}: two different arms of the plan are needed")
        for name, arm in self.arms.items():
            if arm.clean_steps and arm.start != "clean":
                raise ValueError(f"arms.{name}: clean_steps are for start: clean")
            if arm.clean_steps and "build_base_model.clean.steps" in self.common | arm.params:
                raise ValueError(f"arms.{name}: build_base_model.clean.steps and clean_steps exclude each other")
        return self


def plan_path(name: str, root: Path = Path()) -> Path:
    """The file of a plan, named by its name or by its path. Raises ConfigError with the names that there are."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else root / PLANS / f"{name}.yaml"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in (root / PLANS).glob("*.yaml"))) or "none"
        raise ConfigError(f"{path}: no such plan; those in {PLANS}/ are: {there}")
    return path


def load_plan(path: Path) -> Plan:
    """Read and check a plan. Raises ConfigError with one line for every fault."""
    from envace.strict_yaml import NotPlainYamlError, parse_plain_yaml

    try:
        raw = parse_plain_yaml(path.read_text(encoding="utf-8"))
    except (NotPlainYamlError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path}: not readable as YAML: {error}") from None
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: expected a mapping, found {type(raw).__name__}")
    try:
        return Plan.model_validate(raw)
    except ValidationError as error:
        faults = [f"  - {'.'.join(map(str, e['loc'])) or 'plan'}: {e['msg']}" for e in error.errors()]
        raise ConfigError(f"{path}: {len(faults)} fault(s)\n" + "\n".join(faults)) from None


def chosen(plan: Plan, arms: list[str], seeds: list[int]) -> tuple[list[str], list[int]]:
    """The arms and seeds to run; all of the plan where none is named. Raises ConfigError for strangers."""
    for kind, wanted, there in (("arm", arms, list(plan.arms)), ("seed", seeds, plan.seeds)):
        for each in wanted:
            if each not in there:
                raise ConfigError(f"--{kind} {each}: not in this plan, which has {', '.join(map(str, there))}")
    return [a for a in plan.arms if not arms or a in arms], [s for s in plan.seeds if not seeds or s in seeds]
