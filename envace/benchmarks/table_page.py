"""A table of results as Markdown, as an HTML page and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envace.benchmarks.tables import Table, as_json
from envace.files import write_text

REPORTS = Path("reports/benchmarks")
_LEGEND = (
    "Percent. Our rows: mean ± standard deviation over runs. official: what the harness prints; strict: every failure "
    "counts 0 over all tasks. –: not run or not published."
)


def markdown(table: Table) -> str:
    """The whole table with its notes."""
    head = [f"{group} {name}".strip() for group, name in zip(table.groups, table.head, strict=True)]
    lines = [f"# {table.title}", "", _row(["", *head]), _row(["---"] * (len(head) + 1))]
    for row in table.rows:
        label = f"**{row.label}** [{row.mark}]" if row.ours else row.label
        lines.append(_row([label, *row.cells]))
    lines += ["", _LEGEND, ""]
    lines += [f"[{number}] {note}  " for number, note in enumerate(table.notes, 1)]
    if table.subsets:
        lines += ["", "## Subsets and stand-ins: not comparable with any published figure", ""]
        lines += [f"- {line}" for line in table.subsets]
    return "\n".join([*lines, ""])


def write_table(name: str, table: Table, folder: Path) -> list[Path]:
    """NAME.md, NAME.html and NAME.png in `folder`."""
    paths = [folder / f"{name}.{kind}" for kind in ("md", "html", "png")]
    write_text(paths[0], markdown(table))
    write_text(paths[1], _html(table))
    _write_png(paths[2], table)
    return paths


def _html(table: Table) -> str:
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("envace.benchmarks", "."), autoescape=True, trim_blocks=True)
    spans: list[list[Any]] = []
    for group in table.groups:
        if spans and spans[-1][0] == group:
            spans[-1][1] += 1
        else:
            spans.append([group, 1])
    return environment.get_template("table.html.jinja").render(table=as_json(table), spans=spans, legend=_LEGEND)


def _write_png(path: Path, table: Table) -> None:
    """The bars of the picture: the average of every row that has one, the paper's grey, ours in colour."""
    from envace.files import atomic_path
    from envace.report.drawing import BLUE, GREY, figure, png

    columns = [n for n, name in enumerate(table.head) if name in ("Overall", "Average", "Multi", "Irrel")]
    panels = [n for n in columns if any(row.ours and _number(row.cells[n]) is not None for row in table.rows)][:3]
    panels = panels or columns[:1]
    drawn, axes = figure(len(panels), height=1.2 + 0.24 * len(table.rows), squeeze=False, sharey=True)
    for axis, column in zip(axes[0], panels, strict=True):
        rows = table.rows[::-1]
        values = [_number(row.cells[column]) for row in rows]
        colours = [BLUE if row.ours else GREY for row in rows]
        axis.barh(range(len(rows)), [value or 0.0 for value in values], color=colours)
        axis.set_yticks(range(len(rows)), [f"{row.label} [{row.mark}]" if row.ours else row.label for row in rows])
        for place, value in enumerate(values):
            axis.text((value or 0.0) + 1, place, "–" if value is None else f"{value:.1f}", va="center", size=8)
        axis.set(title=f"{table.groups[column]} {table.head[column]}".strip(), xlim=(0, 115))
        axis.grid(axis="y", visible=False)
    with atomic_path(path) as part:
        part.write_bytes(png(drawn))


def _number(cell: str) -> float | None:
    try:
        return float(cell.split(" ")[0])
    except ValueError:
        return None


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
