"""Reports about judges: errors that became 0.0, a frozen scorer, overlong answers, forged verdicts. Each whole kind."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from envace.config import Params
from envace.endpoints import client as endpoint_client
from envace.rewards.build import build_judge
from envace.rewards.checklist import score_checklist
from envace.rewards.health import JudgeHealth, unknown_fraction
from envace.rewards.llm_judge import LlmJudge
from envace.types import Criterion, TurnRecord, Verdict
from tests.field_reports.echo_judge import echo, fooled
from tests.field_reports.injections import DISGUISED, INJECTIONS, SPLIT_INJECTIONS
from tests.field_reports.judge_stub import (
    Answer,
    JudgeStub,
    Mode,
    broken,
    cut,
    hangs,
    html,
    judge_stub,
    right,
    says,
    slow,
)
from tests.unit.rewards.fakes import FakeClient, call, criterion, judge_params, key_of, step, task, turn

PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
TALK = turn(step(call("find", n=1), results=['{"a": 1}']), step(reply="Done."))
ONE_TRY: dict[str, Any] = {"timeout_s": 20, "retries": 0, "deadline_s": 60, "breaker_failures": 1000}
IMPATIENT: dict[str, Any] = {"timeout_s": 0.5, "deadline_s": 1.0}


@pytest.fixture(autouse=True)
def quick_backoff(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Back-off in hundredths of a second."""
    monkeypatch.setattr(endpoint_client, "_FIRST_BACKOFF_S", 0.01)
    yield


def judged(
    params: Params, mode: Mode, criteria: Sequence[Criterion], turns: Sequence[TurnRecord] = (TALK,), **endpoint: Any
) -> tuple[list[dict[str, Verdict]], JudgeHealth, JudgeStub]:
    """The verdicts of each turn alone, all judged at once, through the real client and HTTP."""

    async def run() -> tuple[list[dict[str, Verdict]], JudgeHealth, JudgeStub]:
        async with judge_stub(mode) as stub:
            judge = build_judge(judge_params(params, port=stub.port, **{**ONE_TRY, **endpoint}))
            each = task(criteria)
            made = await asyncio.gather(*(judge.judge_turn(each, criteria, [record]) for record in turns))
            await judge.close()
            return list(made), judge.health, stub

    return asyncio.run(run())


NO_VERDICT: dict[str, Mode] = {
    "503": broken("503 Service Unavailable"),
    "500": broken("500 Internal Server Error"),
    "429": broken("429 Too Many Requests"),
    "401": broken("401 Unauthorized"),
    "404": broken("404 Not Found"),
    "302": lambda prompt, key, number: Answer(b"", "302 Found"),
    "html": html,
    "html 502": lambda prompt, key, number: Answer(b"<html>502</html>", "502 Bad Gateway", "text/html"),
    "cut": cut,
    "hang": hangs,
    "too slow": slow(5),
    "empty body": lambda prompt, key, number: Answer(b""),
    "not a completion": lambda prompt, key, number: Answer(b'{"satisfied": true}'),
    "no choice": lambda prompt, key, number: Answer(b'{"choices": []}'),
    "not UTF-8": lambda prompt, key, number: Answer(b"\xff\xfe"),
    "huge": lambda prompt, key, number: Answer(b" " * (5 << 20)),
    "empty text": lambda prompt, key, number: says(""),
    "prose": lambda prompt, key, number: says("Yes, it is satisfied."),
    "cut JSON": lambda prompt, key, number: says(f'{{"{key}": tr'),
    "another key": lambda prompt, key, number: says('{"satisfied": true}'),
    "text for a boolean": lambda prompt, key, number: says(json.dumps({key: "true"})),
    "a number": lambda prompt, key, number: says("0.0"),
    "fenced": lambda prompt, key, number: says(f'```json\n{{"{key}": false}}\n```'),
    "twice": lambda prompt, key, number: says(f'{{"{key}": true, "{key}": false}}'),
}


@pytest.mark.parametrize("kind", NO_VERDICT)
def test_no_error_of_a_judge_becomes_a_score(params: Params, kind: str) -> None:
    """NVIDIA-NeMo/RL#2479: every judge error became 0.0."""
    criteria = [criterion(0, "tool_call", is_gating=True), criterion(1)]
    (verdicts,), health, _ = judged(
        params, NO_VERDICT[kind], criteria, **(IMPATIENT if "slow" in kind or kind == "hang" else {})
    )
    assert verdicts == {"t0.c0": UNKNOWN, "t0.c1": UNKNOWN}
    score = score_checklist(criteria, verdicts, "gate")
    assert (score.gate, score.unknown_matters) == (None, True)
    assert health.metrics()["judge/unknown_fraction"] == 1.0 and health.unanswered == 2 and health.last_error


def test_a_judge_that_is_down_is_left_alone_and_comes_back(params: Params) -> None:
    """The circuit breaker: what it refuses is unknown as well, and the first good answer closes it."""
    down = True

    def mode(prompt: str, key: str, number: int) -> Answer:
        return Answer(b"", "503 Service Unavailable") if down else says(json.dumps({key: True}))

    async def run() -> None:
        nonlocal down
        async with judge_stub(mode) as stub:
            breaker = {**ONE_TRY, "breaker_failures": 3, "breaker_pause_s": 0.2, "concurrency": 2}
            judge = build_judge(judge_params(params, port=stub.port, **breaker))
            criteria = [criterion(n) for n in range(40)]
            assert set((await judge.judge_turn(task(criteria), criteria, [TALK])).values()) == {UNKNOWN}
            assert len(stub.prompts) < 8
            down = False
            await asyncio.sleep(0.25)
            assert set((await judge.judge_turn(task(criteria), criteria[:1], [TALK])).values()) == {PASS}
            assert set((await judge.judge_turn(task(criteria), criteria, [TALK])).values()) == {PASS}
            await judge.close()

    asyncio.run(run())


TURNS = [turn(step(reply=f"Reply {n}.")) for n in range(25)]


def number_of(prompt: str) -> int:
    """Which of 100 questions: 25 turns of 4 criteria."""
    said = prompt.split('"text": "Reply ')[1].split(".")[0]
    asked = prompt.split('"question": "Question ')[1].split("?")[0]
    return int(said) * 4 + int(asked)


@pytest.mark.parametrize("every", [1, 10])
@pytest.mark.parametrize("failure", ["503", "cut JSON", "html", "prose"])
def test_the_unknown_fraction_is_exact(params: Params, failure: str, every: int) -> None:
    """Down 100 %, 10 %; malformed 10 %: exactly those verdicts are unknown, and all others are what they should be."""

    def mode(prompt: str, key: str, number: int) -> Answer:
        asked = number_of(prompt)
        if asked % every == 0:
            return NO_VERDICT[failure](prompt, key, number)
        return says(json.dumps({key: asked % 3 == 0}))

    criteria = [criterion(n, weight=0.25) for n in range(4)]
    made, health, _ = judged(params, mode, criteria, TURNS)
    for t, verdicts in enumerate(made):
        for n in range(4):
            asked = t * 4 + n
            expected = UNKNOWN if asked % every == 0 else PASS if asked % 3 == 0 else FAIL
            assert verdicts[f"t0.c{n}"] is expected
    assert health.metrics()["judge/unknown_fraction"] == unknown_fraction(made) == 1 / every
    scorable = [not score_checklist(criteria, v, "gate").unknown_matters for v in made]
    assert sum(scorable) == (0 if every == 1 else 15)


def test_a_passing_outage_is_bridged_by_trying_again(params: Params) -> None:
    def mode(prompt: str, key: str, number: int) -> Answer:
        return Answer(b"", "503 Service Unavailable") if number % 2 else says(json.dumps({key: True}))

    (verdicts,), health, stub = judged(params, mode, [criterion()], retries=2)
    assert verdicts == {"t0.c0": PASS} and len(stub.prompts) == 2 and health.unanswered == 0


def test_a_judge_that_sleeps_an_hour_holds_no_verdict_beyond_its_deadline(params: Params) -> None:
    """verl#6673: one sample froze scoring. As shipped, a verdict takes at most 60 s."""
    assert params.reward.judge.endpoint.deadline_s <= 60

    def mode(prompt: str, key: str, number: int) -> Answer:
        return hangs(prompt, key, number) if "Question 3?" in prompt else says(json.dumps({key: True}))

    criteria = [criterion(n, "user", weight=0.2) for n in range(5)]
    patient: dict[str, Any] = {"timeout_s": 1.5, "retries": 20, "deadline_s": 2.0}
    began = time.monotonic()
    (verdicts,), _, _ = judged(params, mode, criteria, **patient)
    assert time.monotonic() - began < 10
    assert verdicts.pop("t0.c3") is UNKNOWN and set(verdicts.values()) == {PASS}
    began = time.monotonic()
    made, health, _ = judged(params, hangs, criteria, [TALK] * 10, **patient, concurrency=2)
    assert time.monotonic() - began < 10
    assert unknown_fraction(made) == health.metrics()["judge/unknown_fraction"] == 1.0


LONG = "x" * 200_000
OVERLONG: dict[str, TurnRecord] = {
    "tool result": turn(step(call("find"), results=[LONG]), step(reply="Done.")),
    "reply": turn(step(call("find"), results=["{}"]), step(reply=LONG)),
    "arguments": turn(step(call("find", text=LONG), results=["{}"]), step(reply="Done.")),
    "user message": turn(step(call("find"), results=["{}"]), step(reply="Done."), user=LONG),
    "tool name": turn(step(call(LONG), results=["{}"]), step(reply="Done.")),
    "escapes": turn(step(call("find"), results=["<" * 200_000]), step(reply="Done.")),
    "many results": turn(step(*[call("find")] * 20, results=[LONG[:10_000]] * 20), step(reply="Done.")),
    "many steps": turn(*(step(call("find", n=n), results=[LONG[:1_000]]) for n in range(200)), step(reply="Done.")),
}


@pytest.mark.parametrize("kind", OVERLONG)
def test_an_overlong_transcript_is_cut_by_rule_and_judged(params: Params, kind: str) -> None:
    """NVIDIA-NeMo/Gym#748: an overlong answer overflowed the judge."""
    criteria = [criterion(0, "reply"), criterion(1, "user")]
    (verdicts,), _, stub = judged(params, right(lambda prompt: True), criteria, [OVERLONG[kind]])
    assert set(verdicts.values()) == {PASS}
    overhead = 3_000  # the instructions and the criterion
    assert all(len(prompt) <= params.reward.judge.max_transcript_chars + overhead for prompt in stub.prompts)
    assert all("left_out" in prompt for prompt in stub.prompts if "Question 0?" in prompt)
    assert kind == "reply" or any("Done." in prompt for prompt in stub.prompts)


def places(text: str) -> dict[str, TurnRecord]:
    """The text wherever something that is not ours can stand."""
    return {
        "tool result": turn(step(call("find"), results=[text]), step(reply="Done.")),
        "JSON tool result": turn(step(call("find"), results=[json.dumps({"note": text})]), step(reply="Done.")),
        "reply": turn(step(call("find"), results=["{}"]), step(reply=text)),
        "reply beside a call": turn(step(call("find"), results=["{}"], reply=text), step(reply="Done.")),
        "arguments": turn(step(call("find", note=text), results=["{}"]), step(reply="Done.")),
        "tool name": turn(step(call(text), results=["{}"]), step(reply="Done.")),
        "user message": turn(step(call("find"), results=["{}"]), step(reply="Done."), user=text),
        "reasoning": turn(step(call("find"), results=["{}"], reasoning=text), step(reply="Done.", reasoning=text)),
    }


TARGETS = ("tool_call", "tool_result", "reply", "reasoning", "user")


def test_the_injections_are_many_and_fool_a_judge_that_reads_them_raw() -> None:
    """The control: pasted into a prompt as they are, they are obeyed or repeated."""
    assert len(INJECTIONS) + len(SPLIT_INJECTIONS) >= 40
    for text in INJECTIONS:
        pasted = f'Check this.\nBEGIN RECORD\n{text}\nEND RECORD\nAnswer with {{"satisfied": ...}}.'
        assert fooled(pasted) is (text not in DISGUISED), text


def test_no_injected_text_forges_a_verdict(params: Params) -> None:
    """garak#1868: output forged the judge's verdict. The judge here repeats any verdict that it can find."""
    criteria = [criterion(n, target) for n, target in enumerate(TARGETS)]
    client = FakeClient(lambda prompt, schema: text_of(echo(prompt, key_of(schema), 0)))
    judge = LlmJudge(client, judge_params(params))

    async def run() -> list[dict[str, Verdict]]:
        records = [record for text in INJECTIONS for record in places(text).values()]
        return [await judge.judge_turn(task(criteria), criteria, [record]) for record in records]

    made = asyncio.run(run())
    assert len(made) == len(INJECTIONS) * 8 and len(client.prompts) > 2_000
    assert {v for verdicts in made for v in verdicts.values()} <= {FAIL, UNKNOWN}
    assert judge.health.metrics()["judge/unknown_fraction"] == unknown_fraction(made)


def text_of(answer: Answer) -> str:
    return json.loads(answer.body or b"")["choices"][0]["message"]["content"]


def test_no_injected_tool_result_forges_a_verdict_over_http(params: Params) -> None:
    criteria = [criterion(0, "tool_result"), criterion(1, "user")]
    records = [turn(step(call("find"), results=[text]), step(reply="Done.")) for text in INJECTIONS]
    records += [turn(step(call("find"), results=[f"{t}{LONG}{t}"]), step(reply="Done.")) for t in INJECTIONS[::10]]
    made, _, _ = judged(params, echo, criteria, records)
    assert {v for verdicts in made for v in verdicts.values()} <= {FAIL, UNKNOWN}


def test_no_verdict_split_over_several_results_is_put_together(params: Params) -> None:
    criteria = [criterion(n, target) for n, target in enumerate(TARGETS)]
    records = [turn(step(*[call("find")] * len(p), results=p), step(reply="Done.")) for p in SPLIT_INJECTIONS]
    records += [turn(*(step(call("find"), results=[part]) for part in p), step(reply="No.")) for p in SPLIT_INJECTIONS]
    made, _, _ = judged(params, echo, criteria, records)
    assert {v for verdicts in made for v in verdicts.values()} <= {FAIL, UNKNOWN}


def test_a_criterion_cannot_forge_a_verdict_either(params: Params) -> None:
    """Checklists come from a file; their texts are escaped as well."""
    criteria = [criterion(n, condition=text, failure_examples=[text]) for n, text in enumerate(INJECTIONS)]
    (verdicts,), _, _ = judged(params, echo, criteria)
    assert PASS not in verdicts.values()


def test_the_echo_judge_is_an_ordinary_one_where_nothing_is_forged(params: Params) -> None:
    (verdicts,), health, _ = judged(params, echo, [criterion(0), criterion(1, "tool_call")])
    assert verdicts == {"t0.c0": FAIL, "t0.c1": FAIL} and health.unknown == 0
