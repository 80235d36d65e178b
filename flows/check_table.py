"""The outcome of `envace data check` for a person: one table of findings, then what it comes to."""

from __future__ import annotations

import shutil
import sys

from envace.data.file_check import FileCheck, Finding

_WIDTH_OF_A_PIPE, _LEAST_WIDTH = 140, 60


def print_check(file: str, outcome: FileCheck, bounds: str) -> None:
    """Print the table and the summary on stdout, as wide as the terminal; in a pipe 140 columns, or COLUMNS."""
    if outcome.findings or outcome.run:
        _print_table([*outcome.findings, *outcome.run])
    if outcome.not_shown:
        told = ", ".join(f"check {check}: {number}" for check, number in outcome.not_shown.items())
        print(f"not shown, raise --limit to see them: {told}")
    print(summary(file, outcome, bounds))


def summary(file: str, outcome: FileCheck, bounds: str) -> str:
    """What happens to the rows, what would fail the run, and whose bounds were used."""
    kept = f"{outcome.kept} kept" + (f" ({outcome.flagged} of them flagged)" if outcome.flagged else "")
    lines = [f"{file}: {outcome.rows} rows in, {kept}, {outcome.quarantined} quarantined"]
    failing = [finding for finding in outcome.run if finding.severity == "run fails"]
    lines += [f"the run would fail by check {finding.check}: {finding.detail}" for finding in failing]
    if outcome.all_kept:
        lines.append("the pipeline takes this file")
    elif not failing:
        lines.append("the pipeline goes on without the quarantined rows")
    return "\n".join([*lines, f"bounds: {bounds}; what each check demands: docs/data.md"])


def _print_table(findings: list[Finding]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = max(_LEAST_WIDTH, shutil.get_terminal_size(fallback=(_WIDTH_OF_A_PIPE, 50)).columns)
    table = Table(box=box.HORIZONTALS, show_lines=True, expand=False, pad_edge=False)
    table.add_column("row, from 0", overflow="fold", ratio=3)
    table.add_column("check", overflow="fold", ratio=3)
    table.add_column("where and what", overflow="fold", ratio=7)
    table.add_column("what to do", overflow="fold", ratio=5)
    for finding in findings:
        row = finding.place if finding.row is None else f"{finding.row} ({finding.place})"
        cells = (
            "\n".join(filter(None, (row, finding.task_id))),
            f"{finding.check} {finding.field}\n{finding.severity}",
            "\n".join(filter(None, (finding.pointer, finding.detail))),
            finding.advice,
        )
        table.add_row(*(Text(cell) for cell in cells))  # not markup: data may hold square brackets
    Console(file=sys.stdout, width=width, highlight=False).print(table)
