"""The language model as judge: what is asked, in which order, what counts as an answer, what is not asked again."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from envace.config import Params
from envace.errors import ConfigError, EngineError
from envace.rewards.build import build_judge
from envace.rewards.hybrid_judge import HybridJudge
from envace.rewards.llm_judge import LlmJudge
from envace.rewards.question import Question
from envace.rewards.rule_judge import RuleJudge
from envace.rewards.steps import steps_to_judge
from envace.rewards.verdict_cache import VerdictCache
from envace.types import Criterion, TurnRecord, Verdict
from tests.unit.rewards.fakes import (
    FakeClient,
    by_schema,
    call,
    criterion,
    judge_params,
    key_of,
    quoting,
    step,
    task,
    turn,
)

PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
TALK = turn(
    step(call("find", n=1), results=['{"a": 1}'], reasoning="SECRET"),
    step(call("find", n=2), results=['{"b": 2}'], reply="One moment."),
    step(reply="Done."),
)
Answer = Callable[[str, dict[str, Any]], str | BaseException]


def ask(
    params: Params,
    answer: Answer,
    criteria: Sequence[Criterion],
    record: TurnRecord = TALK,
    *,
    cache: VerdictCache | None = None,
    **endpoint: Any,
) -> tuple[dict[str, Verdict], FakeClient, LlmJudge]:
    client = FakeClient(answer)
    judge = LlmJudge(client, judge_params(params, **endpoint), cache)
    return asyncio.run(judge.judge_turn(task(criteria), criteria, [record])), client, judge


def on_step(number: int) -> Answer:
    """True on that step of the turn only."""
    return lambda prompt, schema: json.dumps({key_of(schema): last_step(prompt) == number})


def last_step(prompt: str) -> int:
    record = prompt.split("BEGIN RECORD\n")[1].split("\nEND RECORD")[0]
    return json.loads(record.split("\n")[-1])["step"]


@pytest.mark.parametrize(
    ("target", "order"),
    [("tool_call", [0, 1]), ("tool_result", [0, 1]), ("reply", [2, 1]), ("reasoning", [0]), ("user", [0, 1, 2])],
)
def test_a_criterion_is_asked_of_the_steps_that_have_what_it_looks_at(target: str, order: list[int]) -> None:
    assert steps_to_judge(criterion(target=target), TALK) == order


def test_where_no_step_has_it_the_last_step_alone_is_asked() -> None:
    assert steps_to_judge(criterion(target="tool_call"), turn(step(reply="a"), step(reply="b"))) == [1]
    assert steps_to_judge(criterion(target="tool_call"), turn()) == []


def test_asking_stops_with_the_step_that_passes(params: Params) -> None:
    verdicts, client, judge = ask(params, on_step(0), [criterion(target="tool_call")])
    assert verdicts == {"t0.c0": PASS} and len(client.prompts) == 1
    verdicts, client, judge = ask(params, on_step(1), [criterion(target="tool_call")])
    assert verdicts == {"t0.c0": PASS} and [last_step(p) for p in client.prompts] == [0, 1]
    verdicts, client, judge = ask(params, by_schema(False), [criterion(target="tool_call")])
    assert verdicts == {"t0.c0": FAIL} and len(client.prompts) == 2
    assert judge.health.asked == 2 and judge.health.unanswered == 0


def test_criteria_are_asked_side_by_side_up_to_the_bound(params: Params) -> None:
    client = FakeClient(by_schema(True), delay_s=0.02)
    judge = LlmJudge(client, judge_params(params, concurrency=3))
    criteria = [criterion(n) for n in range(8)]
    assert set(asyncio.run(judge.judge_turn(task(criteria), criteria, [TALK])).values()) == {PASS}
    assert client.most_at_once == 3 and len(client.prompts) == 8


def test_the_criteria_of_a_step_have_a_common_prompt_prefix(params: Params) -> None:
    criteria = [criterion(n, condition=f"Condition {n}.") for n in range(3)]
    _, client, _ = ask(params, by_schema(True), criteria)
    heads = {prompt.split("\nEND RECORD\n")[0] for prompt in client.prompts}
    assert len(client.prompts) == 3 and len(heads) == 1
    assert heads.pop().endswith('"text": "Done."}')
    assert all("Condition" in prompt.split("\nEND RECORD\n")[1] for prompt in client.prompts)


def test_settings_and_schema_reach_the_endpoint(params: Params) -> None:
    _, client, _ = ask(params, by_schema(True), [criterion()])
    (options,) = client.options
    key = key_of(options["json_schema"])
    assert (options["temperature"], options["max_tokens"]) == (0.01, 256)
    assert options["json_schema"] == {
        "type": "object",
        "properties": {key: {"type": "boolean"}},
        "required": [key],
        "additionalProperties": False,
    }
    assert key in client.prompts[0]


def test_reasoning_is_shown_only_for_criteria_about_reasoning(params: Params) -> None:
    for target in ("tool_call", "tool_result", "reply", "user"):
        _, client, _ = ask(params, by_schema(False), [criterion(target=target)])
        assert not any("SECRET" in prompt for prompt in client.prompts)
    _, client, _ = ask(params, by_schema(False), [criterion(target="reasoning")])
    assert all("SECRET" in prompt for prompt in client.prompts)


def test_only_the_object_of_the_schema_is_an_answer() -> None:
    question = Question("{}", criterion())
    right = json.dumps({question.key: True})
    assert question.read(right) is PASS
    assert question.read(f" {right}\n") is PASS
    assert question.read(json.dumps({question.key: False})) is FAIL
    wrong = [
        "",
        "true",
        "null",
        "[true]",
        '{"satisfied": true}',
        f"{right}{right}",
        f"Here: {right}",
        f"```json\n{right}\n```",
    ]
    wrong += [json.dumps({question.key: value}) for value in ("true", 1, None, [True], {"a": True})]
    wrong += [json.dumps({question.key: True, "why": "x"}), f'{{"{question.key}": true, "{question.key}": false}}']
    wrong += [
        f"<think>{right}</think>",
        f"<think></think>\n{right}",
        right[:-1],
        right.replace("true", "True"),
        "<html>",
        "\ud83d",
    ]
    assert {question.read(text) for text in wrong} == {UNKNOWN}


def test_the_key_depends_on_everything_that_is_asked() -> None:
    keys = {Question(t, c).key for t in ("a", "b") for c in (criterion(0), criterion(1), criterion(0, "user"))}
    assert len(keys) == 6
    assert Question("a", criterion()).key == Question("a", criterion()).key


def fails_on_step(number: int) -> Answer:
    def answer(prompt: str, schema: dict[str, Any]) -> str | BaseException:
        return EngineError("status 503") if last_step(prompt) == number else json.dumps({key_of(schema): False})

    return answer


def test_an_unanswered_step_makes_the_verdict_unknown_unless_another_step_passes(params: Params) -> None:
    verdicts, client, judge = ask(params, fails_on_step(0), [criterion(target="tool_call")])
    assert verdicts == {"t0.c0": UNKNOWN} and len(client.prompts) == 2
    assert (judge.health.unanswered, judge.health.last_error) == (1, "status 503")

    def later(prompt: str, schema: dict[str, Any]) -> str | BaseException:
        return EngineError("status 503") if last_step(prompt) == 0 else json.dumps({key_of(schema): True})

    assert ask(params, later, [criterion(target="tool_call")])[0] == {"t0.c0": PASS}


def test_a_verdict_takes_one_deadline_for_all_its_steps(params: Params) -> None:
    client = FakeClient(by_schema(False), delay_s=0.2)
    judge = LlmJudge(client, judge_params(params, deadline_s=0.3))
    began = time.monotonic()
    criteria = [criterion(target="user")]
    assert asyncio.run(judge.judge_turn(task(criteria), criteria, [TALK])) == {"t0.c0": UNKNOWN}
    assert time.monotonic() - began < 5 and len(client.prompts) < 3
    assert "0.3 s" in judge.health.last_error


def test_a_busy_judge_fails_no_verdict_that_is_merely_in_the_queue(params: Params) -> None:
    client = FakeClient(by_schema(True), delay_s=0.15)
    judge = LlmJudge(client, judge_params(params, deadline_s=1.0, concurrency=1))
    criteria = [criterion(n) for n in range(10)]
    assert set(asyncio.run(judge.judge_turn(task(criteria), criteria, [TALK])).values()) == {PASS}


def test_a_hanging_judge_holds_no_verdict_longer_than_the_deadline_queue_included(params: Params) -> None:
    client = FakeClient(by_schema(True), delay_s=3600)
    judge = LlmJudge(client, judge_params(params, deadline_s=0.2, concurrency=2))
    criteria = [criterion(n, "user") for n in range(20)]
    began = time.monotonic()
    assert set(asyncio.run(judge.judge_turn(task(criteria), criteria, [TALK])).values()) == {UNKNOWN}
    assert time.monotonic() - began < 5
    assert judge.health.metrics()["judge/unknown_fraction"] == 1.0
    assert client.running == 0


def test_cancelling_a_rollout_cancels_its_questions(params: Params) -> None:
    client = FakeClient(by_schema(True), delay_s=3600)
    judge = LlmJudge(client, judge_params(params, concurrency=2))

    async def cancelled() -> None:
        criteria = [criterion(n) for n in range(4)]
        asking = asyncio.create_task(judge.judge_turn(task(criteria), criteria, [TALK]))
        await asyncio.sleep(0.02)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(cancelled())
    assert client.running == 0
    client.delay_s = 0  # the slots are free again, in another event loop too
    criteria = [criterion()]
    assert asyncio.run(judge.judge_turn(task(criteria), criteria, [TALK])) == {"t0.c0": PASS}


def test_what_was_answered_is_not_asked_again(params: Params, tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "deep" / "verdicts.jsonl")
    criteria = [criterion(n, "tool_call") for n in range(2)]
    verdicts, client, _ = ask(params, on_step(1), criteria, cache=cache)
    assert len(client.prompts) == 4
    again, client, judge = ask(params, by_schema(False), criteria, cache=cache)
    assert again == verdicts and client.prompts == []
    assert (judge.health.asked, judge.health.cached, judge.health.verdicts) == (0, 4, 2)
    _, client, _ = ask(params, on_step(1), criteria, cache=VerdictCache(tmp_path / "deep" / "verdicts.jsonl"))
    assert client.prompts == []
    _, client, _ = ask(params, on_step(1), criteria, cache=cache, model="another")
    assert len(client.prompts) == 4


def test_an_unknown_verdict_is_asked_again(params: Params) -> None:
    cache = VerdictCache()
    assert ask(params, lambda p, s: "oops", [criterion()], cache=cache)[0] == {"t0.c0": UNKNOWN}
    assert ask(params, by_schema(True), [criterion()], cache=cache)[0] == {"t0.c0": PASS}


def test_hybrid_asks_only_about_what_code_leaves_open(params: Params) -> None:
    literal = criterion(0, condition='The final reply contains "Done".', evidence=quoting("reply", "Done."))
    criteria = [literal, criterion(1), criterion(2, "tool_result")]
    client = FakeClient(by_schema(False))
    judge = HybridJudge(LlmJudge(client, judge_params(params, "hybrid")))
    verdicts = asyncio.run(judge.judge_turn(task(criteria), criteria, [TALK]))
    assert list(verdicts.items()) == [("t0.c0", PASS), ("t0.c1", FAIL), ("t0.c2", FAIL)]
    assert not any("Question 0?" in prompt for prompt in client.prompts)
    assert (judge.health.verdicts, judge.health.unknown) == (3, 0)
    asyncio.run(judge.close())
    assert client.closed


def test_health_is_taken_step_by_step(params: Params) -> None:
    _, _, judge = ask(
        params, lambda p, s: "oops" if "Question 0?" in p else by_schema(True)(p, s), [criterion(n) for n in range(4)]
    )
    figures = judge.health.take()
    assert (figures["judge/verdicts"], figures["judge/unknown"], figures["judge/unknown_fraction"]) == (4, 1, 0.25)
    assert figures["judge/unanswered"] == 2 and figures["judge/latency_mean_s"] >= 0
    assert judge.health.take() == {f"judge/{n}": 0 for n in ("verdicts", "unknown", "asked", "unanswered", "cached")}


def test_the_parameters_choose_the_judge(params: Params) -> None:
    assert isinstance(build_judge(params.reward.judge), RuleJudge)
    assert isinstance(build_judge(judge_params(params, "llm")), LlmJudge)
    assert isinstance(build_judge(judge_params(params, "hybrid")), HybridJudge)
    with pytest.raises(ConfigError, match="allowed_hosts"):
        build_judge(judge_params(params, base_url="http://judge.example/v1"))
