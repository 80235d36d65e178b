"""Which work an experiment is made of, what each piece depends on, and where it lies.

.envace/experiments/shared/{data,base,loss,evaluation}-<key>/    made once, used by all arms, seeds and plans
.envace/experiments/<plan>/<arm>-<seed>/                         one training
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.config import Params
from envace.experiment.jobs import Job, Say, StageRunner, key_of
from envace.experiment.merging import arm_params
from envace.experiment.plan import Plan
from envace.experiment.work import Work
from envace.files import read_json, sha256_tree

STATE = Path(".envace/experiments")
SHARED = "shared"
DATA_SECTIONS = ("fetch_data", "validate_data", "prepare_data")
POLICY, TRAINED = Path("models/policy"), Path("models/trained")
TRAINING_SECTIONS = ("rollout", "reward", "advantage", "train_policy")


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy by what it depends on. Its folder can be asked once the jobs before have run.

    `exports`: what its training exported, where there may be a second policy that rehearses (method per_role).
    """

    identity: str
    folder: Callable[[], Path]
    exports: Callable[[], Path] | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One arm and seed: its jobs in order, and those whose outcome is read for the results.

    evaluations: `start` and `trained`; `ceiling` and `control` where the base was built here with faults.
    """

    arm: str
    seed: int
    params: Params
    jobs: list[Job]
    training: Job
    evaluations: dict[str, Job]
    losses: dict[int, Job]


class Layout:
    """Lays out the runs of one plan under `root`. Raises ConfigError for params that are wrong."""

    def __init__(
        self, name: str, plan: Plan, raw: Mapping[str, Any], root: Path, run_stage: StageRunner, say: Say
    ) -> None:
        self._name, self._plan, self._raw = name, plan, raw
        self.experiments = root.resolve() / STATE
        self._work = Work(run_stage, say, root)

    def run(self, arm: str, seed: int) -> Run:
        """The work of an arm and a seed."""
        chosen, params = self._plan.arms[arm], arm_params(self._raw, self._plan, arm, seed)
        data = self._data(params)
        losses: dict[int, Job] = {}
        if chosen.clean_steps:
            before = [data]
            candidates: dict[int, Policy] = {}
            for steps in chosen.clean_steps:
                other = arm_params(self._raw, self._plan, arm, seed, {"build_base_model.clean.steps": steps})
                base = self._base(other, f"seed {seed}, {steps} clean steps")
                candidates[steps] = _clean(base)
                losses[steps] = self._loss(candidates[steps], data, params, f"seed {seed}, {steps} clean steps")
                before += [base, losses[steps]]
            start = _least(candidates, losses)
            around: dict[str, Policy] = {}
        else:
            base = self._base(params, f"seed {seed}")
            before = [data, base]
            clean = _clean(base)
            start = Policy(f"base {base.key}", lambda: base.folder / "models/base") if chosen.start == "base" else clean
            is_ours = params.build_base_model.source == "tiny" and chosen.start == "base"
            control = Policy(f"control {base.key}", lambda: base.folder / "models/references/control")
            around = {"ceiling": clean, "control": control} if is_ours else {}
        training = self._training(arm, seed, params, start, data)
        trained = Policy(f"trained {training.key}", lambda: training.folder / POLICY, lambda: training.folder / TRAINED)
        evaluations = {
            role: self._evaluation(role, policy, params, data, seed, arm if role == "trained" else "")
            for role, policy in {"start": start, **around, "trained": trained}.items()
        }
        first = [job for role, job in evaluations.items() if role != "trained"]
        jobs = [*before, *first, training, evaluations["trained"]]
        return Run(arm, seed, params, jobs, training, evaluations, losses)

    def _shared(self, kind: str, key: str) -> Path:
        return self.experiments / SHARED / f"{kind}-{key[:12]}"

    def _data(self, params: Params) -> Job:
        key = key_of("data", _sections(params, DATA_SECTIONS))
        folder = self._shared("data", key)
        return Job("data", "data", folder, key, lambda: self._work.data(folder, params))

    def _base(self, params: Params, what: str) -> Job:
        sample = params.fetch_data.sample.model_dump(mode="json")
        key = key_of("base", params.build_base_model.model_dump(mode="json"), sample)
        folder = self._shared("base", key)
        return Job("base", f"base policy, {what}", folder, key, lambda: self._work.base(folder, params))

    def _loss(self, policy: Policy, data: Job, params: Params, what: str) -> Job:
        key = key_of("loss", policy.identity, data.key)
        folder = self._shared("loss", key)

        def work() -> None:
            self._work.loss(folder, params, policy.folder(), data.folder)

        return Job("loss", f"validation loss, {what}", folder, key, work, lambda: _hashed(policy))

    def _training(self, arm: str, seed: int, params: Params, start: Policy, data: Job) -> Job:
        key = key_of("training", _sections(params, TRAINING_SECTIONS), start.identity, data.key)
        folder = self.experiments / self._name / f"{arm}-{seed}"
        simulator = self._plan.arms[arm].simulator

        def work() -> None:
            self._work.training(folder, params, start.folder(), data.folder, simulator)

        return Job("training", f"training of {arm}, seed {seed}", folder, key, work, lambda: _hashed(start))

    def _evaluation(self, role: str, policy: Policy, params: Params, data: Job, seed: int, arm: str) -> Job:
        ours = params.evaluate_policy
        # the training's temperatures are not those of an evaluation
        rollout = params.rollout.model_copy(update={"act": ours.act, "rehearse": ours.rehearse})
        settings = [part.model_dump(mode="json") for part in (ours, rollout, params.reward, self._plan.evaluation)]
        key = key_of("evaluation", policy.identity, data.key, settings)
        folder = self._shared("evaluation", key)

        def work() -> None:
            exports = policy.exports() if policy.exports else None
            self._work.evaluation(folder, params, policy.folder(), exports, data.folder, self._plan.evaluation)

        what = f"evaluation of {role}{f' {arm}' if arm else ''}, seed {seed}"
        return Job("evaluation", what, folder, key, work, lambda: _hashed(policy))


def once(runs: list[Run]) -> list[Job]:
    """The jobs of several runs in order, each folder once."""
    return list({job.folder: job for run in runs for job in run.jobs}.values())


def _clean(base: Job) -> Policy:
    return Policy(f"clean {base.key}", lambda: base.folder / "models/references/clean")


def _least(candidates: Mapping[int, Policy], losses: Mapping[int, Job]) -> Policy:
    """The candidate with the least validation loss; of equal ones that of fewer steps."""

    def folder() -> Path:
        found = {steps: read_json(job.folder / "loss.json")["loss"] for steps, job in losses.items()}
        return candidates[min(sorted(found), key=lambda steps: found[steps])].folder()

    return Policy(key_of("least loss", sorted(s.identity for s in candidates.values())), folder)


def _sections(params: Params, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(params, name).model_dump(mode="json") for name in names}


def _hashed(policy: Policy) -> dict[str, str]:
    folders = {"policy": policy.folder()} | ({"exports": policy.exports()} if policy.exports else {})
    return {name: sha256_tree(folder) if folder.is_dir() else "missing" for name, folder in folders.items()}
