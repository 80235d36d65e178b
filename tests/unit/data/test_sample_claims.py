"""What the sample is said to be good for, checked on its rows as a reader of the file sees them, short and large."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from envace.data.canonical import to_task
from envace.data.results import is_error_result
from envace.data.sample import World
from envace.data.sample.catalogue import CATALOGUE, DOMAINS
from envace.data.sample.environment import SampleEnvironment
from envace.data.sample.rows import stream_rows
from envace.data.sample.turns import Partition
from envace.rewards.outcome import contains_fact, score_turn

Row = dict[str, Any]
_CALL = re.compile(r"There is a tool call with name=(\w+) and arguments equal to (\{.*\})\.")
_RESULT = re.compile(r"A result of (\w+) equals (\{.*\})\.")
_FACT = re.compile(r'The final reply contains "(.*)" as whole words\.')


@pytest.fixture(scope="module", params=[None, 53_000], ids=["short", "large"])
def rows(request: pytest.FixtureRequest, world: World) -> list[Row]:
    """90 training rows, 50 held-out ones and 50 hard ones."""
    counts: dict[Partition, int] = {"train": 90, "heldout": 50, "hard": 50}
    return [row for part, count in counts.items() for row in stream_rows(world, count, 7, part, request.param)]


def turns_of(row: Row) -> list[list[dict[str, Any]]]:
    """The messages of each turn, the user message first."""
    turns: list[list[dict[str, Any]]] = []
    for message in row["messages"]:
        if message["role"] == "user":
            turns.append([])
        if turns:
            turns[-1].append(message)
    return turns


def exchanges(turn: list[dict[str, Any]]) -> list[list[tuple[str, dict[str, Any], str]]]:
    """The steps of a turn, each a list of (tool, arguments, result)."""
    steps = []
    for index, message in enumerate(turn):
        calls = [call["function"] for call in message["tool_calls"]]
        results = [m["content"] for m in turn[index + 1 : index + 1 + len(calls)]]
        if calls:
            steps.append([(c["name"], json.loads(c["arguments"]), r) for c, r in zip(calls, results, strict=True)])
    return steps


def test_all_domains_and_tools_occur(rows: list[Row]) -> None:
    assert {row["world"]["domain"] for row in rows} == set(DOMAINS)
    assert {name for row in rows for turn in turns_of(row) for step in exchanges(turn) for name, _, _ in step} == set(
        CATALOGUE
    )


def test_the_second_of_chained_calls_needs_what_only_the_first_says(rows: list[Row]) -> None:
    chained = [(turn, steps) for row in rows for turn in turns_of(row) if len(steps := exchanges(turn)) > 1]
    assert len(chained) > 40
    learned = 0
    for turn, (first, *later) in chained:
        told = json.dumps([list(json.loads(result).values()) for _, _, result in first])
        values = [str(value) for step in later for _, arguments, _ in step for value in arguments.values()]
        learned += any(value not in turn[0]["content"] and value in told for value in values)
    # a reservation needs only to know that something is in stock
    unlearned = sum(later[0][0][0] == "reserve" for _, (_, *later) in chained)
    assert learned == len(chained) - unlearned and learned > 25


def test_forbidden_calls_are_offered_and_never_made(rows: list[Row]) -> None:
    refused: Counter[bool] = Counter()
    for row in rows:
        offered = {tool["function"]["name"] for tool in row["tools"]}
        for turn, outcome in zip(turns_of(row), row["outcome"]["turns"], strict=True):
            forbidden, steps = set(outcome["forbidden_tools"]), exchanges(turn)
            assert forbidden <= offered
            assert not forbidden & {name for step in steps for name, _, _ in step}
            if forbidden:
                refused[bool(steps)] += 1
    assert refused[False] > 6 and refused[True] > 6  # at once, and after having looked


def test_recorded_errors_occur_and_the_reply_understands_them(rows: list[Row]) -> None:
    seen = 0
    for row in rows:
        for turn, outcome in zip(turns_of(row), row["outcome"]["turns"], strict=True):
            if any(is_error_result(result) for step in exchanges(turn) for _, _, result in step):
                seen += 1
                assert outcome["required_facts"] in (["no order"], ["free"])
    assert seen > 4


def test_every_row_can_be_executed_by_its_world(rows: list[Row]) -> None:
    for row in rows:
        environment = SampleEnvironment(row["world"]["seed"])
        for turn in turns_of(row):
            for name, arguments, result in (exchange for step in exchanges(turn) for exchange in step):
                assert environment.respond(name, arguments) == json.loads(result)


def test_code_decides_every_item_and_the_reference_passes_it(rows: list[Row]) -> None:
    targets: Counter[str] = Counter()
    for row in rows:
        for turn, items in zip(turns_of(row), row["checklists"][0], strict=True):
            for item in items:
                targets[item["focus_on"]] += 1
                assert decide(item, turn), item
                assert not decide(item, [turn[0], {"role": "assistant", "content": "", "tool_calls": []}])
    assert set(targets) == {"assistant.tool_calls", "tool.content", "assistant.content.user_visible_reply"}


def decide(item: dict[str, Any], turn: list[dict[str, Any]]) -> bool:
    """Whether the turn meets an item, by its pass condition alone."""
    condition, made = item["pass_condition"], [exchange for step in exchanges(turn) for exchange in step]
    if match := _CALL.fullmatch(condition):
        return any(name == match[1] and arguments == json.loads(match[2]) for name, arguments, _ in made)
    if match := _RESULT.fullmatch(condition):
        return any(name == match[1] and json.loads(result) == json.loads(match[2]) for name, _, result in made)
    match = _FACT.fullmatch(condition)
    assert match, condition
    return contains_fact(match[1], turn[-1]["content"].split("</think>")[-1])


def test_the_reference_has_the_full_verifiable_score(rows: list[Row], params: Any) -> None:
    for row in rows:
        task = to_task(row, "train", [], "sample")
        assert task.outcome
        for turn, outcome in zip(task.turns, task.outcome.turns, strict=True):
            calls = [call for step in turn.reference_steps for call in step.tool_calls]
            scored = score_turn(outcome, calls, turn.reference_steps[-1].reply, params.reward.weights)
            assert scored.satisfied and scored.score == pytest.approx(1)
            assert not score_turn(outcome, calls, "No.", params.reward.weights).satisfied


def test_held_out_and_hard_files_share_no_message_with_training(world: World) -> None:
    said: dict[str, set[str]] = {}
    for partition in ("train", "heldout", "hard"):
        for row_bytes in (None, 53_000):
            for row in stream_rows(world, 60, 8, partition, row_bytes):
                said.setdefault(partition, set()).update(turn[0]["content"] for turn in turns_of(row))
    assert len(set().union(*said.values())) == sum(map(len, said.values()))
