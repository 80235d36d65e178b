"""The judge that is code: decides calls, results and literal facts, and leaves everything else unknown."""

from __future__ import annotations

from collections.abc import Sequence

from envace.files import canonical_json
from envace.rewards.conditions import CallCondition, read_call_condition, read_reply_condition, read_result_condition
from envace.rewards.health import JudgeHealth, UnknownCause, note_unknown
from envace.rewards.outcome import contains_fact
from envace.rewards.quoted_calls import quoted_call
from envace.strict_json import NotStrictJsonError, parse_strict
from envace.types import Criterion, Task, ToolCall, TurnRecord, Verdict


class RuleJudge:
    """Asks nobody. UNKNOWN means "not decidable by code"; see `decide` for the rule."""

    def __init__(self) -> None:
        self.health = JudgeHealth()

    async def judge_turn(
        self, task: Task, criteria: Sequence[Criterion], turns: Sequence[TurnRecord]
    ) -> dict[str, Verdict]:
        """As in RubricJudge."""
        made = {c.criterion_id: decide(task, c, turns[-1]) for c in criteria}
        self.health.count(made)
        for criterion_id in (key for key, verdict in made.items() if verdict is Verdict.UNKNOWN):
            note_unknown(criterion_id, UnknownCause.UNDECIDED)
        return made

    async def close(self) -> None:
        """Nothing to give back."""


def decide(task: Task, criterion: Criterion, turn: TurnRecord) -> Verdict:
    """The verdict of code on one criterion of a turn.

    A criterion is decidable only where its pass condition is understood to the last word (`conditions`) and what the
    reference conversation did fulfils it; a condition with any other word, a negation or a choice, is UNKNOWN.

    - `tool_call`: its evidence quotes one call, and the condition names that tool, with the arguments as JSON or with
      some of them as "name == value". A call of the turn, refused ones included, that equals the quoted one (name and
      canonical arguments) passes. Another call fails if its tool or a stated argument differs, or if the condition
      gave the arguments as JSON; one that differs only in what the condition leaves open is UNKNOWN.
    - `tool_result`: the condition says, as JSON, what a tool answers, and the evidence is that answer. An observation
      of the turn with an equal value (of that tool, where it is named) passes.
    - `reply`: the condition asks for quoted texts that also stand in the reference reply. They must all stand in the
      reply that ends the turn, letter by letter and as whole words.
    - `reasoning` and `user`: never.
    """
    match criterion.target:
        case "tool_call":
            return _decide_call(task, criterion, turn)
        case "tool_result":
            return _decide_result(task, criterion, turn)
        case "reply":
            return _decide_reply(task, criterion, turn)
        case "reasoning" | "user":
            return Verdict.UNKNOWN


def _decide_call(task: Task, criterion: Criterion, turn: TurnRecord) -> Verdict:
    recorded = quoted_call(criterion, task)
    condition = read_call_condition(criterion.pass_condition, recorded) if recorded else None
    if recorded is None or condition is None:
        return Verdict.UNKNOWN
    verdicts = [_compare(call, recorded, condition) for call in turn.calls]
    return next((v for v in (Verdict.PASS, Verdict.UNKNOWN) if v in verdicts), Verdict.FAIL)


def _compare(call: ToolCall, recorded: ToolCall, condition: CallCondition) -> Verdict:
    if call.canonical == recorded.canonical:
        return Verdict.PASS
    if call.tool_name != condition.tool_name or condition.whole:
        return Verdict.FAIL
    arguments = call.parsed()
    as_stated = all(k in arguments and canonical_json(arguments[k]) == v for k, v in condition.stated.items())
    return Verdict.UNKNOWN if as_stated else Verdict.FAIL


def _decide_result(task: Task, criterion: Criterion, turn: TurnRecord) -> Verdict:
    quoted = {canonical_json(v): v for e in criterion.evidence if (v := _container(e.snippet)) is not None}
    if len(quoted) != 1 or any(e.source != "tool_result" for e in criterion.evidence):
        return Verdict.UNKNOWN
    names = [tool.name for tool in task.tools]
    condition = read_result_condition(criterion.pass_condition, next(iter(quoted.values())), names)
    if condition is None:
        return Verdict.UNKNOWN
    for observation in turn.observations:
        tool_name = observation.call.tool_name if observation.call else None
        value = _container(observation.content) if condition.tool_name in (None, tool_name) else None
        if value is not None and canonical_json(value) == condition.content:
            return Verdict.PASS
    return Verdict.FAIL


def _decide_reply(task: Task, criterion: Criterion, turn: TurnRecord) -> Verdict:
    facts = read_reply_condition(criterion.pass_condition)
    reference = _reference_reply(task, criterion)
    if facts is None or not all(contains_fact(fact, reference) for fact in facts):
        return Verdict.UNKNOWN
    said = turn.reply
    return Verdict.PASS if said is not None and all(contains_fact(fact, said) for fact in facts) else Verdict.FAIL


def _reference_reply(task: Task, criterion: Criterion) -> str:
    """The reply that ends the reference turn; where the task holds no reference, what the evidence quotes of it."""
    for turn in task.turns:
        if turn.turn_index == criterion.turn_index and turn.reference_steps:
            return turn.reference_steps[-1].reply
    return "\n".join(e.snippet for e in criterion.evidence if e.source == "reply")


def _container(text: str) -> dict | list | None:
    """The JSON object or array in a text, or None."""
    try:
        value = parse_strict(text)
    except NotStrictJsonError:
        return None
    return value if isinstance(value, dict | list) else None
