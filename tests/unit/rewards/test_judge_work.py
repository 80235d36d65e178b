"""Why verdicts are unknown, and what judging took: told from each other through the real client, kept apart on disk."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from envace.config import Params
from envace.endpoints import client as endpoint_client
from envace.rewards.build import build_judge
from envace.rewards.health import JudgeWork, judge_work
from envace.rewards.llm_judge import LlmJudge
from envace.rewards.rule_judge import RuleJudge
from envace.rollout.records import rollout_row
from envace.training.recorder import Recorder
from envace.training.step_metrics import rollout_metrics
from envace.training.timings import step_split
from envace.types import Rollout, StopReason, TurnRecord, Verdict
from tests.field_reports.judge_stub import Mode, broken, hangs, html, judge_stub, right, says
from tests.unit.rewards.fakes import FakeClient, call, criterion, judge_params, key_of, step, task, turn

TALK = turn(step(call("find", n=1), results=['{"a": 1}']), step(reply="Done."))
ONE_TRY: dict[str, Any] = {"timeout_s": 20, "retries": 0, "deadline_s": 60, "breaker_failures": 1000}


@pytest.fixture(autouse=True)
def quick_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_client, "_FIRST_BACKOFF_S", 0.01)


def work_of(params: Params, mode: Mode, count: int = 1, **endpoint: Any) -> list[JudgeWork]:
    """What judging one criterion took, so many times in turn with one judge."""

    async def run() -> list[JudgeWork]:
        works = []
        async with judge_stub(mode) as stub:
            judge = build_judge(judge_params(params, port=stub.port, **{**ONE_TRY, **endpoint}))
            for _ in range(count):
                with judge_work() as work:
                    await judge.judge_turn(task([criterion()]), [criterion()], [TALK])
                works.append(work)
            await judge.close()
        return works

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("mode", "endpoint", "cause"),
    [
        (hangs, {"timeout_s": 0.3}, "timeout"),
        (hangs, {"timeout_s": 5.0, "deadline_s": 0.3}, "timeout"),
        (html, {}, "malformed"),
        (lambda *_: says("not the object of the schema"), {}, "malformed"),
        (broken("503 Service Unavailable"), {}, "unreachable"),
        (broken("401 Unauthorized"), {}, "unreachable"),
    ],
)
def test_the_cause_of_an_unknown_verdict_is_told(params: Params, mode: Mode, endpoint: Any, cause: str) -> None:
    (work,) = work_of(params, mode, **endpoint)
    assert work.causes == {"t0.c0": cause}


def test_nobody_on_the_port_is_unreachable(params: Params) -> None:
    async def run() -> JudgeWork:
        judge = build_judge(judge_params(params, port=9, **ONE_TRY))
        with judge_work() as work:
            await judge.judge_turn(task([criterion()]), [criterion()], [TALK])
        await judge.close()
        return work

    assert asyncio.run(run()).causes == {"t0.c0": "unreachable"}


def test_a_breaker_that_opened_is_told_from_the_failures_that_opened_it(params: Params) -> None:
    works = work_of(params, broken("503 Service Unavailable"), count=4, breaker_failures=2)
    assert [w.causes["t0.c0"] for w in works] == ["unreachable", "unreachable", "breaker", "breaker"]


def test_calls_cache_hits_and_seconds_belong_to_the_turn_that_was_judged(params: Params) -> None:
    first, again = work_of(params, right(lambda prompt: True), count=2)
    assert first.asked >= 1 and first.cached == 0 and first.waited == 1 and first.seconds > 0 and not first.causes
    assert again.asked == 0 and again.cached == first.asked and again.waited == 1
    assert again.figures()["cached"] == first.asked


def test_turns_judged_side_by_side_do_not_mix(params: Params) -> None:
    judge = LlmJudge(FakeClient(lambda prompt, schema: json.dumps({key_of(schema): True})), judge_params(params))

    async def one(count: int) -> JudgeWork:
        with judge_work() as work:
            criteria = [criterion(n) for n in range(count)]
            await judge.judge_turn(task(criteria), criteria, [TALK])
        return work

    async def run() -> list[JudgeWork]:
        return await asyncio.gather(*(one(count) for count in (1, 3, 2)))

    assert [w.waited for w in asyncio.run(run())] == [1, 3, 2]


def test_what_code_cannot_decide_is_a_cause_of_its_own() -> None:
    async def run() -> JudgeWork:
        with judge_work() as work:
            await RuleJudge().judge_turn(task([criterion()]), [criterion()], [TALK])
        return work

    work = asyncio.run(run())
    assert work.causes == {"t0.c0": "undecided"} and work.figures() == {}


def record(seconds: float, cached: int) -> dict[str, Any]:
    judged = TurnRecord(0, "Hello", verdicts={"t0.c0": Verdict.PASS, "t0.c1": Verdict.UNKNOWN})
    judged.unknown_causes = {"t0.c1": "timeout"}
    judged.judge_work = {"asked": 4 - cached, "cached": cached, "waited": 2, "seconds": seconds}
    rollout = Rollout("a", 0, [], [judged], StopReason.COMPLETED, None)
    return rollout_row(rollout, step=1, phase="train")


def test_metrics_hold_verdicts_by_cause_and_timings_hold_durations(tmp_path: Path) -> None:
    files = []
    for name, made in (("fast", record(0.5, cached=0)), ("slow", record(7.5, cached=3))):
        recorder = Recorder(tmp_path / name)
        metrics = rollout_metrics([made])
        recorder.write("train", 1, metrics, [json.dumps(made)], {"step": 1.0})
        split = step_split(recorder.timings("train", 1), metrics)
        assert split["verdict_s"] == (0.25 if name == "fast" else 3.75)
        assert split["judge_calls"] + split["judge_cached"] == 4
        recorder.collect(tmp_path / name / "metrics.jsonl", tmp_path / name / "rollouts.parquet")
        files.append([(tmp_path / name / f).read_bytes() for f in ("metrics.jsonl", "rollouts.parquet")])
    assert files[0] == files[1], "nothing in the stage's outputs depends on how long the judge took"
    (line,) = (json.loads(x) for x in files[0][0].splitlines())
    assert (line["judge/verdicts"], line["judge/pass"], line["judge/fail"], line["judge/unknown"]) == (2, 1, 0, 1)
    causes = {k: v for k, v in line.items() if k.startswith("judge/unknown_") and k != "judge/unknown_fraction"}
    assert causes.pop("judge/unknown_timeout") == 1 and set(causes.values()) == {0} and len(causes) == 4


def test_a_step_without_a_judge_has_no_figures_of_one() -> None:
    assert not any(name.startswith(("judge_", "verdict")) for name in step_split({"step": 1.0}, {}))
