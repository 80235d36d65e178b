"""Runs many rollouts side by side: each independent of the others, at most so many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from envace.chat.layout import ChatLayout
from envace.engines.protocol import TokenEngine
from envace.rollout.loop import RolloutSettings, unfold
from envace.types import Rollout, Task


async def unfold_all(
    tasks: Sequence[Task],
    repeats: int,
    *,
    engine: TokenEngine,
    layout: ChatLayout,
    settings_of: Callable[[Task], RolloutSettings],
    concurrency: int,
) -> list[Rollout]:
    """`repeats` rollouts of every task, in order of tasks then repeats. A failing rollout never ends the others."""
    gate = asyncio.Semaphore(concurrency)

    async def one(task: Task, index: int) -> Rollout:
        async with gate:
            return await unfold(task, index, engine=engine, layout=layout, settings=settings_of(task))

    return list(await asyncio.gather(*(one(task, index) for task in tasks for index in range(repeats))))
