"""The judge that is code: decides all of the sample, little of the public record, and never passes wrongly."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from envace.data.aliases import normalise_row
from envace.data.canonical import to_task
from envace.files import compact_json
from envace.rewards.checklist import score_checklist
from envace.rewards.quoted_calls import read_calls
from envace.rewards.rule_judge import RuleJudge, decide
from envace.types import Criterion, Step, Task, ToolCall, ToolResult, ToolSpec, Turn, TurnRecord, Verdict
from tests.unit.rewards.fakes import as_recorded, call, criterion, quoting, step, task, turn

PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
PUBLIC_RECORD = Path("../shared/data/cm2_public_example.json")


def of_turn(task: Task, index: int) -> list[Criterion]:
    return [c for c in task.rubrics[0].criteria if c.turn_index == index]


def verdicts(task: Task, record: TurnRecord) -> dict[str, Verdict]:
    return {c.criterion_id: decide(task, c, record) for c in of_turn(task, record.turn_index)}


def test_the_reference_conversation_of_every_sample_task_passes_all(sample_tasks: list[Task]) -> None:
    judge, judged = RuleJudge(), 0
    for each in sample_tasks:
        for reference in each.turns:
            criteria = of_turn(each, reference.turn_index)
            made = asyncio.run(judge.judge_turn(each, criteria, [as_recorded(reference)]))
            assert set(made.values()) == {PASS}
            assert score_checklist(criteria, made, "gate").score == pytest.approx(1.0)
            judged += len(made)
    assert judge.health.metrics()["judge/unknown_fraction"] == 0
    assert judge.health.verdicts == judged > 1000


def test_an_empty_turn_of_any_sample_task_fails_all(sample_tasks: list[Task]) -> None:
    for each in sample_tasks:
        for reference in each.turns:
            assert set(verdicts(each, turn(step(), index=reference.turn_index)).values()) == {FAIL}


def spoilt(text: str) -> str:
    """Arguments or a result with another value in it."""
    value = json.loads(text)
    key = next(iter(value))
    return compact_json(value | {key: "something else"})


def test_a_wrong_call_result_or_reply_fails_just_the_criteria_about_it(sample_tasks: list[Task]) -> None:
    checked = 0
    for each in sample_tasks:
        for reference in each.turns:
            right = as_recorded(reference)
            if len(right.calls) != 1:
                continue
            target = {c.criterion_id: c.target for c in of_turn(each, reference.turn_index)}
            record = as_recorded(reference)
            made = record.steps[0].calls[0]
            record.steps[0].calls[0] = made.model_copy(update={"arguments": spoilt(made.arguments)})
            assert {target[k] for k, v in verdicts(each, record).items() if v is FAIL} == {"tool_call"}
            record = as_recorded(reference)
            record.steps[0].observations[0].content = spoilt(record.observations[0].content)
            assert {target[k] for k, v in verdicts(each, record).items() if v is FAIL} == {"tool_result"}
            record = as_recorded(reference)
            record.reply = "I do not know."
            assert {target[k] for k, v in verdicts(each, record).items() if v is FAIL} == {"reply"}
            checked += 1
    assert checked > 100


def test_of_the_public_record_only_its_tool_call_criterion_is_decidable(project_root: Path) -> None:
    path = project_root / PUBLIC_RECORD
    if not path.is_file():
        pytest.skip(f"{PUBLIC_RECORD} is not there")
    row = normalise_row(json.loads(path.read_text(encoding="utf-8"))[0])
    each = to_task(row, "train", [], "public")
    made = {k: v for t in each.turns for k, v in verdicts(each, as_recorded(t)).items()}
    assert len(made) == 14
    assert {k: v for k, v in made.items() if v is not UNKNOWN} == {"t0.c0": PASS}
    other = turn(step(call("get_the_last_games_of_a_football_team", teamid="Washington")))
    assert verdicts(each, other)["t0.c0"] is FAIL


def paris(condition: str, snippet: str | None = None, /, **arguments: Any) -> tuple[Task, Criterion]:
    """A task whose reference calls `book` for Paris, and a criterion about that call."""
    made = call("book", **(arguments or {"city": "Paris", "nights": 3}))
    quoted = f'"name": "book", "arguments": {json.dumps(made.arguments)}' if snippet is None else snippet
    result = ToolResult(call_id="0", content='{"ok": true}', is_error=False)
    steps = [Step(step_index=0, reasoning="", reply="", tool_calls=[made], tool_results=[result])]
    about = criterion(0, "tool_call", condition, evidence=quoting("tool_call", quoted))
    return task([about], [Turn(turn_index=0, user_message="", reference_steps=steps)]), about


def decided(condition: str, *calls: ToolCall, snippet: str | None = None) -> Verdict:
    each, about = paris(condition, snippet)
    return decide(each, about, turn(step(*calls)))


RIGHT = call("book", nights=3, city="Paris")
UNDERSTOOD = [
    'There is a tool call with name=book and arguments equal to {"nights": 3, "city": "Paris"}.',
    'There exists an assistant tool call with name=book and arguments.city == "Paris" and arguments.nights == 3.',
    "The assistant calls book with city='Paris' and nights=3.",
    "The assistant makes a call of the tool `book` with city set to Paris and nights equal to 3.",
    'A call to "book" is made with the argument city: "Paris", nights: 3.',
]


@pytest.mark.parametrize("condition", UNDERSTOOD)
def test_a_condition_that_names_the_recorded_call_is_decided(condition: str) -> None:
    assert decided(condition, RIGHT) is PASS
    assert decided(condition, call("look"), RIGHT) is PASS
    assert decided(condition) is FAIL
    for wrong in (call("look", city="Paris", nights=3), call("book", city="Rome", nights=3), call("book", nights=3)):
        assert decided(condition, wrong) is FAIL
    for wrong in (call("book", city="Paris", nights=30), call("book", city="Paris", nights="3")):
        assert decided(condition, wrong) is FAIL


def test_what_the_condition_leaves_open_is_unknown_not_failed() -> None:
    condition = "There is a tool call with name=book and arguments.city == 'Paris'."
    assert decided(condition, RIGHT) is PASS
    assert decided(condition, call("book", city="Paris", nights=4)) is UNKNOWN
    assert decided(condition, call("book", city="Rome", nights=3)) is FAIL
    assert decided("There is a call of book.", call("book", city="Rome")) is UNKNOWN
    assert decided("There is a call of book.", call("look")) is FAIL
    assert decided(UNDERSTOOD[1], call("book", city="Paris", nights=3, late=True)) is UNKNOWN
    assert decided(UNDERSTOOD[0], call("book", city="Paris", nights=3, late=True)) is FAIL


@pytest.mark.parametrize(
    "condition",
    [
        'There is no tool call with name=book and arguments equal to {"nights": 3, "city": "Paris"}.',
        "The assistant does not call book with city=Paris and nights=3.",
        "The assistant calls only book with city=Paris and nights=3.",
        "The assistant calls book twice with city=Paris and nights=3.",
        "The assistant calls book with city=Paris and nights=3 before it asks the user.",
        "The assistant calls book with city=Paris or city=Rome and nights=3.",
        "The assistant calls book with city=Rome and nights=3.",
        "The assistant calls book with city!=Paris and nights=3.",
        "The assistant calls book with city=Paris and nights>=3.",
        "The assistant calls book with city=Paris and nights=3 and late=true.",
        "The assistant calls book with city=Paris, France and nights=3.",
        "The assistant calls book with city=Paris and nights=3.5.",
        "The assistant calls book with city=Paris and nights=30.",
        "The assistant calls book with city = the user's city.",
        "The assistant calls book with a suitable city, for example Paris, and nights=3.",
        "The assistant calls booking with city=Paris and nights=3.",
        "The assistant calls book_hotel with city=Paris and nights=3.",
        'There is a tool call with name=book and arguments equal to {"nights": 4, "city": "Paris"}.',
        'There is a tool call with name=book and arguments equal to {"nights": 3, "city": "Paris"',
        "The right tool is called.",
        "",
    ],
)
def test_a_condition_that_says_anything_else_is_not_decided(condition: str) -> None:
    for calls in ([], [RIGHT], [call("book", city="Rome")]):
        assert decided(condition, *calls) is UNKNOWN


ARGUMENTS = '{"city": "Paris", "nights": 3}'


@pytest.mark.parametrize(
    "snippet",
    [
        f'"name": "book", "arguments": {json.dumps(ARGUMENTS)}',
        f'{{"id": "1", "type": "function", "function": {{"name": "book", "arguments": {json.dumps(ARGUMENTS)}}}}}',
        f'"name": "book",\n  "arguments": {ARGUMENTS}',
        f'"name":"book","arguments":"{ARGUMENTS}"',
        json.dumps(f'{{"name": "book", "arguments": {json.dumps(ARGUMENTS)}}}'),
        '"name": "book", "arguments": "{\\"city\\": \\"Par',
        '"name": "book"',
        "book",
    ],
)
def test_the_quoted_call_is_found_however_it_is_quoted(snippet: str) -> None:
    assert decided(UNDERSTOOD[0], RIGHT, snippet=snippet) is PASS
    assert decided(UNDERSTOOD[0], call("book", city="Rome", nights=3), snippet=snippet) is FAIL


@pytest.mark.parametrize("snippet", ["", "look", '"name": "look", "arguments": "{"', '"arguments": "{}"', "{" * 200])
def test_evidence_that_quotes_no_call_decides_nothing(snippet: str) -> None:
    assert decided(UNDERSTOOD[0], RIGHT, snippet=snippet) is UNKNOWN


def test_evidence_that_quotes_two_different_calls_decides_nothing() -> None:
    each, about = paris(UNDERSTOOD[0])
    second = quoting("tool_call", '"name": "book", "arguments": "{}"')
    both = about.model_copy(update={"evidence": [*about.evidence, *second]})
    assert decide(each, both, turn(step(RIGHT))) is UNKNOWN


def test_names_and_values_that_look_alike_are_told_apart() -> None:
    each, about = paris('There is a call with name=book and arguments.name == "book".', name="book")
    assert decide(each, about, turn(step(call("book", name="book")))) is PASS
    assert decide(each, about, turn(step(call("book", name="nook")))) is FAIL
    assert read_calls('"name": "a", "arguments": "[1]"') == []


def about_result(condition: str, snippet: str = '{"order": "A7", "paid": 3}') -> tuple[Task, Criterion]:
    tools = [ToolSpec(name=n, description="", parameters_schema="{}", schema_sha256="") for n in ("find", "find_order")]
    about = criterion(0, "tool_result", condition, evidence=quoting("tool_result", snippet))
    return task([about], tools=tools), about


def test_a_result_is_compared_as_a_value_and_by_the_tool_that_is_named() -> None:
    each, about = about_result('A result of find_order equals {"order": "A7", "paid": 3}.')
    good = '{"paid":3,"order":"A7"}'
    assert decide(each, about, turn(step(call("find_order"), results=[good]))) is PASS
    assert decide(each, about, turn(step(call("find"), results=[good]))) is FAIL
    for bad in ('{"paid":3}', '{"paid":30,"order":"A7"}', f"{good} {good}", "", "A7"):
        assert decide(each, about, turn(step(call("find_order"), results=[bad]))) is FAIL
    each, about = about_result('The tool response is {"order": "A7", "paid": 3}.')
    assert decide(each, about, turn(step(call("find"), results=[good]))) is PASS


@pytest.mark.parametrize(
    ("condition", "snippet"),
    [
        ('A result of find_order does not equal {"order": "A7"}.', '{"order": "A7"}'),
        ('A result of find_order equals {"order": "A8"}.', '{"order": "A7"}'),
        ('A result of some_tool equals {"order": "A7"}.', '{"order": "A7"}'),
        ("The tool response includes an error stating that an integer was expected.", '{"error": "integer"}'),
        ('A result of find_order equals {"order": "A7"}.', "A7"),
    ],
)
def test_a_condition_about_results_that_says_anything_else_is_not_decided(condition: str, snippet: str) -> None:
    each, about = about_result(condition, snippet)
    for results in ([], [snippet]):
        assert decide(each, about, turn(step(call("find_order"), results=results))) is UNKNOWN


def about_reply(condition: str, reference: str = "Order A7 costs 18.5 €, Zoë.") -> tuple[Task, Criterion]:
    steps = [Step(step_index=0, reasoning="", reply=reference, tool_calls=[], tool_results=[])]
    about = criterion(0, "reply", condition, evidence=quoting("reply", reference))
    return task([about], [Turn(turn_index=0, user_message="", reference_steps=steps)]), about


def test_literal_facts_of_the_reply_are_whole_words() -> None:
    each, about = about_reply('The final reply contains "A7" and "18.5" as whole words.')
    for reply, verdict in [
        ("It is A7 for 18.5.", PASS),
        ("It is A7.", FAIL),
        ("A78 for 18.5", FAIL),
        ("A7 for 118.5", FAIL),
        ("A7 for 18.55", FAIL),
        ("a7 for 18.5", FAIL),
        ("", FAIL),
    ]:
        assert decide(each, about, turn(step(reply=reply))) is verdict


def test_a_fact_said_beside_a_call_or_in_reasoning_is_not_in_the_final_reply() -> None:
    each, about = about_reply('The final reply contains "A7".')
    early = step(call("find"), reply="It is A7.", reasoning="A7")
    assert decide(each, about, turn(early)) is FAIL
    assert decide(each, about, turn(early, step(reply="Done."))) is FAIL


@pytest.mark.parametrize(
    "condition",
    [
        'The final reply does not contain "A7".',
        'The final reply contains "A7" or "Zoë".',
        'The final reply contains no "A7".',
        'The final reply contains "A8".',
        'The final reply contains an answer for "A7".',
        'The final reply says that the order "A7" is late.',
        "The final reply contains no match results.",
        "The final reply contains A7.",
        'The final reply contains "A7" as the final word.',
        'The reply text "A7" as a whole.',
        'The reply contains "A7" and "Zoë" as a phrase.',
    ],
)
def test_a_condition_about_the_reply_that_says_anything_else_is_not_decided(condition: str) -> None:
    each, about = about_reply(condition)
    for reply in ("", "Order A7, Zoë.", "A8"):
        assert decide(each, about, turn(step(reply=reply))) is UNKNOWN


@pytest.mark.parametrize("target", ["reasoning", "user"])
def test_reasoning_and_the_user_are_never_decided_by_code(target: str) -> None:
    about = criterion(0, target, 'The text contains "A7".')
    assert decide(task([about]), about, turn(step(reply="A7", reasoning="A7"))) is UNKNOWN
