"""Deadlines, cancellation and failures: the record is whole however a rollout ends, and no other one waits for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from envace.chat.layout import ChatLayout
from envace.engines.protocol import Generation, GenerationRequest
from envace.engines.scripted import ScriptedEngine
from envace.rollout.batch import unfold_all
from envace.rollout.loop import RolloutSettings, unfold
from envace.rollout.records import rollout_row
from envace.types import Role, Rollout, StopReason, Task

Maker = Callable[..., Task]
Settings = Callable[..., RolloutSettings]
WEATHER = ("get_weather", {"city": "Oslo"})


class HangsAfter:
    """Plays a script, then never answers those sessions again."""

    def __init__(self, layout: ChatLayout, script: list[str], hanging: set[str], after: int) -> None:
        self._inner, self._hanging, self._after = ScriptedEngine(layout, script), hanging, after
        self._count: dict[str, int] = {}
        self.hangs = asyncio.Event()

    async def generate(self, request: GenerationRequest) -> Generation:
        count = self._count[request.session] = self._count.get(request.session, 0) + 1
        if request.session in self._hanging and count > self._after:
            self.hangs.set()
            await asyncio.Event().wait()
        return await self._inner.generate(request)


@pytest.fixture
def script(write: Callable[..., str]) -> list[str]:
    return [write(WEATHER), '{"weather": "sunny"}', "It is sunny."]


def test_a_rollout_past_its_deadline_fails_clearly_and_nothing_else_waits(
    layout: ChatLayout, make_task: Maker, settings_with: Settings, script: list[str]
) -> None:
    tasks = [make_task(("Sky?", [WEATHER], []), task_id=f"t{i}") for i in range(6)]

    async def main() -> list[Rollout]:
        engine = HangsAfter(layout, script, {"t1#0", "t4#0"}, after=2)
        settings = settings_with(deadline_s=0.3)
        return await unfold_all(tasks, 1, engine=engine, layout=layout, settings_of=lambda _: settings, concurrency=2)

    start = time.monotonic()
    rollouts = asyncio.run(main())
    assert time.monotonic() - start < 5
    for rollout in rollouts:
        if rollout.task_id in ("t1", "t4"):
            assert rollout.stop_reason is StopReason.ENGINE_FAILURE and rollout.reward is None
            assert rollout.error == "the rollout took longer than rollout.deadline_s (0.3 s) and was stopped"
            assert len(rollout.outputs) == 2 and len(rollout.turns[0].observations) == 1
        else:
            assert rollout.stop_reason is StopReason.COMPLETED and rollout.reward is not None


def test_an_engine_that_times_out_by_itself_is_not_taken_for_the_deadline(
    layout: ChatLayout, make_task: Maker, settings_with: Settings
) -> None:
    class Impatient:
        async def generate(self, request: GenerationRequest) -> Generation:
            raise TimeoutError("no answer in 20 s")

    work = unfold(
        make_task(("Sky?", [], [])), 0, engine=Impatient(), layout=layout, settings=settings_with(deadline_s=60)
    )
    assert asyncio.run(work).error == "TimeoutError: no answer in 20 s"


@pytest.mark.parametrize("parallel", ["sequential", "concurrent"])
def test_cancellation_leaves_a_whole_record(
    layout: ChatLayout, make_task: Maker, settings_with: Settings, write: Callable[..., str], parallel: str
) -> None:
    script = [write(WEATHER, WEATHER), '{"weather": "sunny"}']
    ended: list[Rollout] = []

    async def main() -> None:
        engine = HangsAfter(layout, script, {"t0#0"}, after=2)
        running = asyncio.create_task(
            unfold(
                make_task(("Sky?", [], [])),
                0,
                engine=engine,
                layout=layout,
                settings=settings_with(parallel_calls=parallel),
                on_end=ended.append,
            )
        )
        await engine.hangs.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert len(asyncio.all_tasks()) == 1  # no rehearsal is left behind

    asyncio.run(main())
    (rollout,) = ended
    assert rollout.stop_reason is StopReason.CANCELLED and rollout.reward is None and not rollout.success
    assert [o.role for o in rollout.outputs] == [Role.ACT, Role.REHEARSE]
    row = rollout_row(rollout, step=1, phase="train")
    assert row["stop_reason"] == "cancelled" and row["reward"] is None and len(row["outputs"]) == 2


def test_a_batch_that_is_cancelled_hands_over_every_rollout_that_began(
    layout: ChatLayout, make_task: Maker, settings_with: Settings, script: list[str]
) -> None:
    tasks = [make_task(("Sky?", [WEATHER], []), task_id=f"t{i}") for i in range(4)]
    ended: list[Rollout] = []

    async def main() -> None:
        engine = HangsAfter(layout, script, {"t2#0"}, after=0)
        work = unfold_all(
            tasks,
            1,
            engine=engine,
            layout=layout,
            settings_of=lambda _: settings_with(),
            concurrency=1,
            on_end=ended.append,
        )
        running = asyncio.create_task(work)
        await engine.hangs.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert [(r.task_id, r.stop_reason) for r in ended] == [
        ("t0", StopReason.COMPLETED),
        ("t1", StopReason.COMPLETED),
        ("t2", StopReason.CANCELLED),
    ]


def test_every_stop_reason_has_a_test_that_names_it(project_root: Any) -> None:
    written = "".join(p.read_text(encoding="utf-8") for p in (project_root / "tests/unit/rollout").glob("test_*.py"))
    assert [r.name for r in StopReason if f"is StopReason.{r.name}" not in written] == []
