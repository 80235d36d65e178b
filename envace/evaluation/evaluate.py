"""Evaluates policies: held-out tasks with the tools executed by code, the same tasks rehearsed, and fidelity."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from envace.chat.layout import ChatLayout
from envace.config import EvaluatePolicyParams, RewardParams, RolloutParams
from envace.data.sample.environment import SampleEnvironment
from envace.engines.load import load_policy
from envace.engines.protocol import TokenEngine
from envace.evaluation.fidelity import measure_fidelity
from envace.evaluation.played import EngineByRole, Played
from envace.evaluation.summary import summarise
from envace.rewards.build import build_judge
from envace.rewards.kind import reward_kind
from envace.rollout.batch import unfold_all
from envace.rollout.judging import can_score
from envace.rollout.loop import RolloutSettings
from envace.rollout.records import rollout_row
from envace.types import Rollout, Task
from envace.workers import in_processes

MAX_SLOTS = 128
LABELS = ("policy", "split", "environment")


@dataclass(slots=True)
class Evaluation:
    """Figures by split and environment, and the rollouts behind them as rows."""

    metrics: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)


def evaluate_policies(
    policies: Mapping[str, Played | Path],
    tasks: Sequence[Task],
    *,
    evaluation: EvaluatePolicyParams,
    rollout: RolloutParams,
    reward: RewardParams,
) -> Iterator[tuple[str, Evaluation]]:
    """Evaluate several policies side by side, one process a core; yields each with its name, in the order given.

    The figures are those of evaluating them one by one: each process has one thread and its own seeds.
    """
    one = partial(_evaluate_pair, tasks=tasks, evaluation=evaluation, rollout=rollout, reward=reward)
    yield from zip(policies, in_processes(one, policies.items(), os.cpu_count() or 1), strict=True)


def _evaluate_pair(named: tuple[str, Played | Path], **settings: Any) -> Evaluation:
    return evaluate_policy(*named, **settings)


def evaluate_policy(
    name: str,
    played: Played | Path,
    *,
    tasks: Sequence[Task],
    evaluation: EvaluatePolicyParams,
    rollout: RolloutParams,
    reward: RewardParams,
) -> Evaluation:
    """Evaluate a policy (or a folder that holds one) on `tasks` (any splits).

    Tasks without a world, or without anything to score by, are left out of the figures that need one, and those
    figures count what was used.
    """
    engine, layout = _load(Played(played) if isinstance(played, Path) else played, rollout)
    by_split: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        by_split[task.split].append(task)
    result = Evaluation()
    sampling = rollout.model_copy(update={"act": evaluation.act, "rehearse": evaluation.rehearse})
    for split, members in sorted(by_split.items()):
        result.metrics[split] = asyncio.run(
            _evaluate_split(name, split, members, engine, layout, evaluation, sampling, reward, result.rows)
        )
    return result


async def _evaluate_split(
    name: str,
    split: str,
    tasks: Sequence[Task],
    engine: TokenEngine,
    layout: ChatLayout,
    evaluation: EvaluatePolicyParams,
    rollout: RolloutParams,
    reward: RewardParams,
    rows: list[dict[str, Any]],
) -> dict[str, Any]:
    worlds = {t.world.seed: SampleEnvironment(t.world.seed) for t in tasks if t.world}
    scorable = [t for t in tasks if can_score(reward, t)]
    needs_judge = any(reward_kind(reward, t) == "checklist" for t in scorable)
    judge = build_judge(reward.judge) if needs_judge else None

    async def run(environment: str, chosen: Sequence[Task]) -> dict[str, Any] | None:
        def settings(task: Task) -> RolloutSettings:
            world = worlds[task.world.seed] if environment == "true" and task.world else None
            return RolloutSettings(rollout, reward, evaluation.seed, world, judge)

        if not chosen:
            return None
        rollouts: list[Rollout] = await unfold_all(
            chosen,
            evaluation.repeats,
            engine=engine,
            layout=layout,
            settings_of=settings,
            concurrency=MAX_SLOTS,
        )
        rows.extend(rollout_row(r, policy=name, split=split, environment=environment) for r in rollouts)
        return summarise(rollouts)

    try:
        return {
            "true": await run("true", [t for t in scorable if t.world]),
            "rehearsed": await run("rehearsed", scorable),
            "fidelity": await measure_fidelity(tasks, engine=engine, layout=layout, rollout=rollout),
        }
    finally:
        if judge is not None:
            await judge.close()


def _load(played: Played, rollout: RolloutParams) -> tuple[TokenEngine, ChatLayout]:
    """One engine for both roles. Two policies have one tokenizer: both were trained from the same base."""
    longest = rollout.max_prompt_tokens + max(rollout.max_act_tokens, rollout.max_rehearse_tokens)
    first = load_policy(played.act, max_slots=MAX_SLOTS, max_length=longest)
    first.layout.require(rollout.role_prompts)
    if played.rehearse is None:
        return first.engine, first.layout
    second = load_policy(played.rehearse, max_slots=MAX_SLOTS, max_length=longest)
    return EngineByRole(first.engine, second.engine), first.layout
