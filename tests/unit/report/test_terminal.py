"""Transcripts on a terminal: who said what, in words and in colour, and nothing that could steer the terminal."""

from __future__ import annotations

import io
import json
from typing import Any

from rich.console import Console

from envace.algo.recorded import group_figures
from envace.report.terminal import print_group, print_rollout
from envace.rollout.records import rollout_row
from envace.types import Observation, Output, Role, Rollout, StepRecord, StopReason, ToolCall, TurnRecord, Verdict

CALL = ToolCall(tool_name="get_weather", arguments='{"city": "Łódź"}')
HOSTILE = "\x1b]0;owned\x07\x1b[2J[bold red]not markup[/] :smile: \u202e"


def output(role: Role, text: str, turn: int = 0) -> Output:
    return Output(role, turn, [1] * 9, [2] * 3, [-0.1] * 3, text)


def row(rollout: Rollout, **labels: Any) -> dict[str, Any]:
    made = rollout_row(rollout, **labels)
    return {**made, "turns": json.loads(made["turns"])}


def example(reward: float | None = 0.75, index: int = 0) -> dict[str, Any]:
    """A thought, a call that code refuses, one that is rehearsed, one that a true tool answers, a reply."""
    steps = [
        StepRecord("", "", [], [Observation(None, '{"error": "not one JSON object"}', "code")]),
        StepRecord(
            "I need the weather.",
            "One moment.",
            [CALL, CALL],
            [Observation(CALL, '{"sky": "sunny"}', "rehearsed"), Observation(CALL, '{"sky": "grey"}', "environment")],
        ),
        StepRecord("", "It is sunny."),
    ]
    turn = TurnRecord(0, "What is the weather?", steps, "It is sunny.", 0.75, False)
    turn.verdicts = {"t0.c0": Verdict.PASS, "t0.c1": Verdict.FAIL, "t0.c2": Verdict.UNKNOWN}
    texts = ["<tool_call>oops", "<think>I need the weather.</think>...", "It is sunny."]
    outputs = [output(Role.ACT, texts[0]), output(Role.ACT, texts[1]), output(Role.REHEARSE, '{"sky": "sunny"}')]
    outputs.append(output(Role.ACT, texts[2]))
    reason = StopReason.ENGINE_FAILURE if reward is None else StopReason.COMPLETED
    rollout = Rollout("t7", index, outputs, [turn], reason, reward, False, "gone" if reward is None else "")
    return row(rollout, step=3, phase="train")


def printed(made: dict[str, Any], colour: bool = False, **more: Any) -> str:
    file = io.StringIO()
    console = Console(file=file, width=100, force_terminal=colour, color_system="standard" if colour else None)
    print_rollout(console, made, **more)
    return file.getvalue()


def lines(text: str) -> list[tuple[str, str]]:
    return [(line[:11].strip(), line[12:].strip()) for line in text.splitlines()[1:]]


def test_every_line_says_who_wrote_it_in_order() -> None:
    told = printed(example(), questions={"t0.c1": "Did it say 5?"})
    assert told.startswith("task t7 · rollout 0 · phase train · step 3")
    assert lines(told) == [
        ("USER", "What is the weather?"),
        ("ACT", "<tool_call>oops"),
        ("CODE", '{"error": "not one JSON object"}'),
        ("ACT", "(thinks) I need the weather."),
        ("|", "One moment."),
        ("|", 'call get_weather {"city": "Łódź"}'),
        ("REHEARSE", '{"sky": "sunny"}'),
        ("|", 'call get_weather {"city": "Łódź"}'),
        ("TOOL (true)", '{"sky": "grey"}'),
        ("ACT", "It is sunny."),
        ("judged", "PASS    t0.c0"),
        ("judged", "FAIL    t0.c1 Did it say 5?"),
        ("judged", "UNKNOWN t0.c2"),
        ("judged", "turn 1: score 0.750, not all satisfied"),
        ("stopped", "completed"),
        ("reward", "0.750"),
    ]


def test_colours_only_add_to_the_words() -> None:
    plain, coloured = printed(example()), printed(example(), colour=True)
    assert "\x1b[" in coloured and "\x1b[" not in plain
    import re

    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_an_unscorable_rollout_has_no_reward_rather_than_0() -> None:
    made = example(None)
    (figures,) = group_figures([made])
    told = printed(made, figures=figures)
    assert "none: not scorable" in told and "advantage" not in told and "engine_failure (gone)" in told


def test_outputs_that_ended_the_rollout_are_shown_as_written() -> None:
    cut = Rollout("t", 0, [output(Role.ACT, "and on and on")], [TurnRecord(0, "Go.")], StopReason.OUTPUT_TRUNCATED, 0.0)
    assert ("ACT", "and on and on") in lines(printed(row(cut)))
    step = StepRecord("", "", [CALL])
    outputs = [output(Role.ACT, "..."), output(Role.REHEARSE, "It is sunny, I guess")]
    broken = Rollout("t", 0, outputs, [TurnRecord(0, "Go.", [step])], StopReason.INVALID_REHEARSAL, 0.0)
    told = lines(printed(row(broken)))
    assert told[1:3] == [("ACT", 'call get_weather {"city": "Łódź"}'), ("REHEARSE", "It is sunny, I guess")]
    assert ("stopped", "invalid_rehearsal") in told


def test_no_text_can_steer_the_terminal_or_be_read_as_markup() -> None:
    call = ToolCall(tool_name=HOSTILE, arguments=json.dumps({HOSTILE: HOSTILE}))
    steps = [StepRecord(HOSTILE, HOSTILE, [call], [Observation(call, HOSTILE, "rehearsed")])]
    turn = TurnRecord(0, HOSTILE, steps, HOSTILE, 0.0, False, {HOSTILE: Verdict.PASS})
    outputs = [output(Role.ACT, HOSTILE), output(Role.REHEARSE, HOSTILE), output(Role.ACT, HOSTILE)]
    rollout = Rollout(HOSTILE, 0, outputs, [turn], StopReason.ENGINE_FAILURE, None, False, HOSTILE)
    told = printed(row(rollout, policy=HOSTILE), questions={HOSTILE: HOSTILE})
    assert not set(told) & {"\x1b", "\x07", "\u202e"}
    assert "[bold red]not markup[/] :smile:" in told


def test_a_group_shows_each_roles_baseline_and_advantage() -> None:
    rows = [example(1.0, 0), example(0.5, 1), example(None, 2)]
    file = io.StringIO()
    print_group(Console(file=file, width=120), rows, group_figures(rows))
    cells = [line.split() for line in file.getvalue().splitlines() if line.strip()[:1].isdigit()]
    assert cells == [
        ["0", "completed", "1.000", "3", "0.750", "+0.250", "1", "0.750", "+0.250"],
        ["1", "completed", "0.500", "3", "0.750", "-0.250", "1", "0.750", "-0.250"],
        ["2", "engine_failure", "–", "3", "–", "–", "1", "–", "–"],
    ]
