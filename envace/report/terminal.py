"""Rollouts on a terminal: the two-role transcript, how it was judged, and the baselines of its group.

Readable without colour too: every line says who wrote it. rich leaves colours out in a pipe and where NO_COLOR is set.
Task texts and outputs are not to be trusted: control characters are spelled out, and nothing is read as markup.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

from envace.algo.recorded import ROLES, RoleFigures
from envace.files import compact_json
from envace.report.transcripts import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

Row = Mapping[str, Any]
Figures = Mapping[str, RoleFigures]

_WIDTH_OF_A_PIPE = 120
_WIDTH_OF_BOTH_ROLES = 98
"""Columns that the group's table needs; on a narrower terminal each role has a table of its own."""
_ANSWERED_BY = {"rehearsed": "REHEARSE", "code": "CODE", "environment": "TOOL (true)"}
_STYLES = {"USER": "bold", "ACT": "bold cyan", "REHEARSE": "bold magenta", "CODE": "bold yellow"}
_SAME = "  |"
_VERDICTS = {"pass": "green", "fail": "red", "unknown": "yellow"}


def terminal() -> Console:
    """A console as wide as the terminal; in a pipe 120 columns, or COLUMNS."""
    from rich.console import Console

    if isinstance(sys.stdout, TextIOWrapper):  # an encoding that lacks a letter is no reason to stop
        sys.stdout.reconfigure(errors="backslashreplace")
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDTH_OF_A_PIPE
    return Console(width=width or shutil.get_terminal_size().columns, highlight=False, markup=False, emoji=False)


def print_rollout(
    console: Console, row: Row, *, figures: Figures | None = None, questions: Mapping[str, str] | None = None
) -> None:
    """Print one rollout.

    Args:
        row: as `envace.rollout.records.read_rollouts` gives it.
        figures: its advantages by role, where it is part of a training group.
        questions: what each criterion asks, by its id.
    """
    from rich.rule import Rule
    from rich.table import Table

    console.print(Rule(title(row), align="left", style="dim"))
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, min_width=11)
    grid.add_column(overflow="fold", ratio=1)
    for index, turn in enumerate(row["turns"]):
        outputs = [o for o in row["outputs"] if o["turn_index"] == index]
        for speaker, text in (*_said(turn, outputs), *_judged(index, turn, questions or {})):
            grid.add_row(_styled(speaker, _STYLES.get(speaker, "dim")), text)
    for name, text in _ending(row, figures):
        grid.add_row(_styled(name, "bold"), text)
    console.print(grid)


def print_group(console: Console, rows: Sequence[Row], figures: Sequence[Figures]) -> None:
    """Print the rollouts of one group side by side: rewards, and each role's outputs, baseline and advantage."""
    for roles in [ROLES] if console.width >= _WIDTH_OF_BOTH_ROLES else [(role,) for role in ROLES]:
        console.print(_group_table(rows, figures, roles))


def _group_table(rows: Sequence[Row], figures: Sequence[Figures], roles: Sequence[str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("rollout", "stop reason", "reward"):
        table.add_column(name, justify="left" if name == "stop reason" else "right")
    for role in roles:
        for name in ("outputs", "baseline", "advantage"):
            table.add_column(f"{role}\n{name}", justify="right", style=_STYLES[role.upper()].split()[1])
    for row, known in zip(rows, figures, strict=True):
        cells = [str(row["rollout_index"]), visible(row["stop_reason"]), number(row["reward"])]
        for role in roles:
            of_role = known[role]
            signed = "–" if of_role.baseline is None else f"{of_role.advantage:+.3f}"
            cells += [str(of_role.outputs), number(of_role.baseline), signed]
        table.add_row(*cells)
    return table


def print_meanings(console: Console, meanings: Mapping[str, str]) -> None:
    """Print words with what they mean, a paragraph each, as wide as the console."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True, min_width=11)
    grid.add_column(ratio=1)
    for word, meaning in meanings.items():
        grid.add_row(_styled(word, "bold"), meaning)
    console.print(grid)


def title(row: Row) -> str:
    """Where a rollout comes from."""
    labels = [f"{name} {row[name]}" for name in ("phase", "step", "policy", "split", "environment") if name in row]
    return visible(" · ".join([f"task {row['task_id']}", f"rollout {row['rollout_index']}", *labels]))


def number(value: float | None) -> str:
    """A figure, or a dash where there is none (never 0 in its place)."""
    return "–" if value is None else f"{value:.3f}"


def _said(turn: Mapping[str, Any], outputs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Text]]:
    """Who said what in a turn. An output that ended the rollout stands in no step, so it is shown as it was written."""
    yield "USER", _plain(turn["user"])
    acts = [i for i, o in enumerate(outputs) if o["role"] == "act"]
    for nth, at in enumerate(acts):
        following = outputs[at + 1 : acts[nth + 1] if nth + 1 < len(acts) else None]
        if nth >= len(turn["steps"]):
            yield "ACT", _plain(outputs[at]["text"])
            continue
        yield from _step(turn["steps"][nth], outputs[at]["text"], [o["text"] for o in following])


def _step(step: Mapping[str, Any], written: str, rehearsed: Sequence[str]) -> Iterator[tuple[str, Text]]:
    calls, answers = step["calls"], step["observations"]
    speaker = "ACT"  # once an output: further lines of the same one are not named again
    if step["reasoning"]:
        yield speaker, _plain(f"(thinks) {step['reasoning']}", "dim italic")
        speaker = _SAME
    broken = bool(answers) and not calls
    if broken or step["reply"] or not calls:
        yield speaker, _plain(written if broken else step["reply"])
        speaker = _SAME
    for index, call in enumerate(calls):
        said = _plain("call ", "cyan")
        said.append(visible(f"{call['name']} {compact_json(call['arguments'])}"))
        yield speaker, said
        speaker = _SAME
        if index < len(answers):
            yield _answer(answers[index])
    if broken:
        yield from map(_answer, answers)
    used = sum(a["source"] == "rehearsed" for a in answers)
    for text in rehearsed[used:]:  # not a JSON object or array, or cut by length: no answer to any call
        yield "REHEARSE", _plain(text)


def _answer(observation: Mapping[str, Any]) -> tuple[str, Text]:
    source = observation["source"]
    return _ANSWERED_BY.get(source, visible(source)), _plain(observation["content"])


def _judged(index: int, turn: Mapping[str, Any], questions: Mapping[str, str]) -> Iterator[tuple[str, Text]]:
    for criterion, verdict in turn.get("verdicts", {}).items():
        told = _plain(verdict.upper().ljust(8), _VERDICTS.get(verdict, ""))
        told.append(visible(f"{criterion} {questions.get(criterion, '')}".rstrip()), "dim")
        yield "  judged", told
    satisfied = "all satisfied" if turn["satisfied"] else "not all satisfied"
    yield "  judged", _plain(f"turn {index + 1}: score {number(turn['score'])}, {satisfied}", "dim")


def _ending(row: Row, figures: Figures | None) -> Iterator[tuple[str, Text]]:
    told = _plain(row["stop_reason"], "green" if row["success"] else "yellow")
    told.append(visible(f" ({row['error']})" if row["error"] else ""))
    yield "stopped", told
    unscorable = "none: not scorable, left out of baselines and loss"
    yield "reward", _plain(unscorable if row["reward"] is None else number(row["reward"]), "bold")
    for role, known in (figures or {}).items():
        if known.baseline is not None:
            told = _plain(f"{role} {known.advantage:+.3f}", _STYLES[role.upper()])
            told.append(f"  on every token of its {role} outputs: {known.outputs}; baseline {number(known.baseline)}")
            yield "advantage", told


def _plain(text: str, style: str = "") -> Text:
    return _styled(visible(text), style)


def _styled(text: str, style: str) -> Text:
    from rich.text import Text

    return Text(text, style)
