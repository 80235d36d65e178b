"""Runs many rollouts side by side: each independent of the others, at most so many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from envace.chat.layout import ChatLayout
from envace.engines.protocol import TokenEngine
from envace.rollout.judging import scorer_of
from envace.rollout.loop import OnEnd, RolloutSettings, unfold
from envace.types import Rollout, Task


async def unfold_all(
    tasks: Sequence[Task],
    repeats: int,
    *,
    engine: TokenEngine,
    layout: ChatLayout,
    settings_of: Callable[[Task], RolloutSettings],
    concurrency: int,
    on_end: OnEnd | None = None,
) -> list[Rollout]:
    """`repeats` rollouts of every task, in order of tasks then repeats. A failing rollout never ends the others.

    Raises DataError, before any rollout begins, for a task that its settings cannot score. `on_end` gets every rollout
    that began, as it ends.
    """
    settings = [settings_of(task) for task in tasks]
    for task, own in zip(tasks, settings, strict=True):
        scorer_of(task, own)

    def start(position: int, index: int) -> Awaitable[Rollout]:
        task, own = tasks[position], settings[position]
        return unfold(task, index, engine=engine, layout=layout, settings=own, on_end=on_end)

    return await run_bounded([(p, i) for p in range(len(tasks)) for i in range(repeats)], start, concurrency)


async def run_bounded(
    keys: Sequence[tuple[int, int]], start: Callable[[int, int], Awaitable[Rollout]], concurrency: int
) -> list[Rollout]:
    """One rollout for each (task, repeat), at most `concurrency` at a time, in the order of the keys."""
    gate = asyncio.Semaphore(concurrency)

    async def one(position: int, index: int) -> Rollout:
        async with gate:
            return await start(position, index)

    return list(await asyncio.gather(*(one(*key) for key in keys)))
