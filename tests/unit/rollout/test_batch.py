"""Many rollouts side by side: independent, bounded, in order; one that fails never ends the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from envace.chat.layout import ChatLayout
from envace.engines.protocol import Generation, GenerationRequest
from envace.engines.scripted import ScriptedEngine
from envace.rollout.batch import unfold_all
from envace.rollout.loop import RolloutSettings
from envace.rollout.records import read_rollouts, rollout_row, write_rollouts
from envace.types import Role, Rollout, StopReason, Task

Maker = Callable[..., Task]
Settings = Callable[..., RolloutSettings]


class Busy:
    """Plays a script with pauses, fails some sessions in its own way, and counts how many requests run at once."""

    def __init__(self, layout: ChatLayout, script: list[str], failing: dict[str, BaseException]) -> None:
        self._inner, self._failing = ScriptedEngine(layout, script), failing
        self.now = self.most = 0

    async def generate(self, request: GenerationRequest) -> Generation:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0.001 * (request.seed % 3))
            if request.session in self._failing:
                raise self._failing[request.session]
            return await self._inner.generate(request)
        finally:
            self.now -= 1


@pytest.fixture
def run(layout: ChatLayout, make_task: Maker, settings_with: Settings, write: Callable[..., str]) -> Callable[..., Any]:
    """Runs six tasks three times each; gives the rollouts and the engine."""

    def start(failing: dict[str, BaseException] | None = None, concurrency: int = 5) -> tuple[list[Rollout], Busy]:
        call = ("get_weather", {"city": "Łódź"})
        tasks = [make_task(("Weather?", [call], ["sunny"]), task_id=f"t{i}") for i in range(6)]
        engine = Busy(layout, [write(call), '{"weather": "sunny"}', "It is sunny."], failing or {})
        work = unfold_all(
            tasks, 3, engine=engine, layout=layout, settings_of=lambda _: settings_with(), concurrency=concurrency
        )
        return asyncio.run(work), engine

    return start


def test_rollouts_come_in_order_of_tasks_and_repeats(run: Callable[..., Any]) -> None:
    rollouts, engine = run()
    assert [(r.task_id, r.rollout_index) for r in rollouts] == [(f"t{i}", k) for i in range(6) for k in range(3)]
    assert all(r.reward == 1.0 for r in rollouts) and 1 < engine.most <= 5


def test_a_failing_rollout_never_ends_the_others(run: Callable[..., Any]) -> None:
    failing = {"t1#0": RuntimeError("boom"), "t3#2": OSError("gone"), "t5#1": ValueError("odd")}
    rollouts, _ = run(failing)
    for rollout in rollouts:
        if f"{rollout.task_id}#{rollout.rollout_index}" in failing:
            assert rollout.stop_reason is StopReason.ENGINE_FAILURE and rollout.reward is None
        else:
            assert rollout.stop_reason is StopReason.COMPLETED and rollout.reward == 1.0


def test_how_many_run_at_once_changes_nothing(run: Callable[..., Any]) -> None:
    alone, _ = run(concurrency=1)
    together, _ = run(concurrency=18)
    assert alone == together


def test_rows_of_rollouts_survive_the_table_whatever_their_order(run: Callable[..., Any], tmp_path: Any) -> None:
    rollouts, _ = run({"t1#0": RuntimeError("boom")})
    rows = [rollout_row(r, step=2, phase="train") for r in rollouts]
    write_rollouts(tmp_path / "a.parquet", rows, ("step", "phase"))
    write_rollouts(tmp_path / "b.parquet", rows[::-1], ("step", "phase"))
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    back = read_rollouts(tmp_path / "a.parquet")
    assert [r["reward"] for r in back] == [r.reward for r in rollouts]
    failed = back[3]
    assert failed["stop_reason"] == "engine_failure" and failed["reward"] is None and "boom" in failed["error"]
    assert back[0]["turns"][0]["steps"][0]["calls"] == [{"name": "get_weather", "arguments": {"city": "Łódź"}}]
    assert [o["role"] for o in back[0]["outputs"]] == ["act", "rehearse", "act"]
    first = rollouts[0].outputs[0]
    assert back[0]["outputs"][0]["prompt_tokens"] == len(first.prompt_ids) and first.role is Role.ACT
