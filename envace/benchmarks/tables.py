"""Our rows beside the paper's: which cells they may fill, and what a reader must know about each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from envace.benchmarks.collect import Cell, Group, Line, Run
from envace.benchmarks.harness import Mode, find_benchmark
from envace.benchmarks.paper import LAYOUTS, OVERALL_OF, paper_rows
from envace.errors import ConfigError

NOT_RUN = "–"
_MODES: tuple[Mode, ...] = ("official", "strict")


@dataclass(frozen=True, slots=True)
class TableRow:
    """A printed row; `ours` sets it apart from the paper's, `mark` is its note's number."""

    label: str
    cells: list[str]
    ours: bool
    mark: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its notes. `subsets`: lines about runs whose figures may not stand in a cell."""

    title: str
    groups: list[str]
    head: list[str]
    rows: list[TableRow]
    notes: list[str]
    subsets: list[str]


def table(number: int, lines: Sequence[Line], subset_runs: Sequence[Run]) -> Table:
    """Table 1 or 3 of the paper with ours below. Raises ConfigError for a table that has no harness here."""
    if number not in LAYOUTS:
        raise ConfigError(f"table {number} cannot be printed; there are: {', '.join(map(str, LAYOUTS))}")
    layout = LAYOUTS[number]
    metrics = [metric for _, _, metric in layout.columns]
    rows = [TableRow(p.label, [p.cells.get(m, NOT_RUN) for m in metrics], False) for p in paper_rows(number)]
    notes: list[str] = []
    for line in lines:
        filled = [_with_overall(number, _cells(line, mode)) for mode in _MODES]
        if not any(metric in cells for cells in filled for metric in metrics):
            continue
        notes.append("; ".join(settings(group) for group in line.groups))
        for mode, cells in zip(_MODES, filled, strict=True):
            shown = [_text(cells.get(metric), layout.decimals) for metric in metrics]
            rows.append(TableRow(f"{line.who} ({mode})", shown, True, len(notes)))
    told = [subset_line(run) for run in subset_runs]
    return Table(layout.title, [g for g, _, _ in layout.columns], [h for _, h, _ in layout.columns], rows, notes, told)


def settings(group: Group) -> str:
    """What decides a row's figures and may differ from the paper's, which names neither versions nor user models."""
    record = group.runs[0].provenance
    spec, report = record.spec, record.driver
    harness = f"{spec.harness.name} {spec.harness.version}"
    parts = [f"{find_benchmark(group.benchmark).title} by {harness}", _runs(group)]
    parts += _weights(group.runs[0])
    if spec.policy is not None:
        sampling = spec.policy.sampling
        parts.append(f"T = {sampling.temperature:g}, top-p {sampling.top_p:g}, {sampling.max_tokens} tokens")
    parts += [f"{role} {model}" for role, model in report.models.items() if model]
    parts += [f"{key} {value}" for key, value in spec.options.items()]
    missing = sorted({reason for run in group.runs for reason in run.metrics.not_run.values() if reason})
    parts += [f"not run: {_missing(group.runs[0], reason)} ({reason})" for reason in missing]
    failed = [sum(getattr(c, kind) for r in group.runs for c in r.metrics.counts.values()) for kind in _FAILURES]
    parts += [f"{count} {kind.replace('_', ' ')}s" for count, kind in zip(failed, _FAILURES, strict=True) if count]
    return ", ".join([*parts, *_pass_hat(group)])


_FAILURES = ("model_failure", "infra_failure")


def _runs(group: Group) -> str:
    """How many there are of the paper's four, which are trials where a harness has them."""
    trials = group.runs[0].provenance.spec.trials
    if trials == 1:
        return f"{len(group.runs)} of 4 runs"
    return f"{len(group.runs)} run{'s' if len(group.runs) > 1 else ''} of {trials} trials a task"


def _weights(run: Run) -> list[str]:
    """Which policy of its name it is, as far as that is known."""
    version, weights = run.provenance.model_version, run.provenance.spec.checkpoint_sha256
    return [f"version {version}"] * bool(version) + [f"checkpoint {(weights or '')[:8]}"] * bool(weights)


def _pass_hat(group: Group) -> list[str]:
    """pass^k for each k that there are trials for, by domain and on average: strict, the mean over runs."""
    found: dict[str, list[str]] = {}
    for key in group.runs[0].metrics.strict:
        name, marked, k = key.rpartition("_pass^")
        values = [run.metrics.strict.get(key) for run in group.runs]
        if marked and not name.endswith("_plug_in"):
            numbers = [value for value in values if value is not None]
            text = f"{fmean(numbers):.1f}" if numbers and len(numbers) == len(values) else NOT_RUN
            found.setdefault(k, []).append(f"{name} {text}")
    return [f"pass^{k} (strict) {' / '.join(parts)}" for k, parts in found.items()]


def subset_line(run: Run) -> str:
    """One line about a run that fills no cell: what was run of what, and its figures."""
    parts = []
    for category, count in run.metrics.counts.items():
        done = count.scored + count.model_failure + count.infra_failure
        if done:
            strict, official = run.metrics.strict.get(category), run.metrics.official.get(category)
            parts.append(f"{category} {done} of {count.expected}: {_percent(official)} ({_percent(strict)} strict)")
    why = f" Stopped: {run.metrics.aborted}." if run.metrics.aborted else ""
    why += " A script played the user." if run.stand_in else ""
    name = find_benchmark(run.metrics.benchmark).title
    who = ", ".join([run.who, *_weights(run), name])
    return f"{who}: {'; '.join(parts) or 'nothing was run'}.{why}"


def as_json(found: Table) -> dict[str, Any]:
    """Plain data, for the page's template."""
    rows = [{"label": r.label, "cells": r.cells, "ours": r.ours, "mark": r.mark} for r in found.rows]
    return {
        "title": found.title,
        "groups": found.groups,
        "head": found.head,
        "rows": rows,
        "notes": found.notes,
        "subsets": found.subsets,
    }


def _missing(run: Run, reason: str) -> str:
    return ", ".join(category for category, why in run.metrics.not_run.items() if why == reason)


def _cells(line: Line, mode: Mode) -> dict[str, Cell]:
    return {metric: cell for group in line.groups for metric, cell in group.cells(mode).items()}


def _with_overall(number: int, cells: dict[str, Cell]) -> dict[str, Cell]:
    """The table's last column, from the means of its parts; there only where all of them are."""
    parts = [cells[metric] for metric in OVERALL_OF[number] if metric in cells]
    if len(parts) < len(OVERALL_OF[number]):
        return cells
    mean = sum(part.mean for part in parts) / len(parts)
    return {**cells, "overall": Cell(mean, None, min(part.runs for part in parts))}


def _text(cell: Cell | None, decimals: int) -> str:
    if cell is None:
        return NOT_RUN
    spread = "" if cell.sd is None else f" ± {cell.sd:.{decimals}f}"
    return f"{cell.mean:.{decimals}f}{spread}"


def _percent(value: float | None) -> str:
    return NOT_RUN if value is None else f"{value:.1f} %"
