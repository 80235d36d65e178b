"""Puts the report together: one HTML page that needs nothing beside it, and the same pictures as PNG files."""

from __future__ import annotations

import base64
from pathlib import Path

from envace.report import pictures, tables
from envace.report.curves import curves
from envace.report.headline import rows_of
from envace.report.inputs import Inputs
from envace.report.transcripts import samples

_TEMPLATE = "page.html.jinja"


def write_report(inputs: Inputs, title: str, folder: Path) -> None:
    """Write index.html and the pictures into `folder`, which is made. The same inputs give the same bytes."""
    learned = curves(inputs.rollouts)
    rows = rows_of(inputs.evaluation)
    drawn = {"learning_curve": pictures.learning_curve(learned), "stop_reasons": pictures.stop_reasons(learned)}
    drawn["outputs_by_role"] = pictures.outputs_by_role(learned)
    if inputs.timings:
        drawn["time_split"] = pictures.time_split(inputs.timings)
    if rows:
        drawn["before_and_after"] = pictures.before_and_after(rows)
    folder.mkdir(parents=True, exist_ok=True)
    for name, png in drawn.items():
        (folder / f"{name}.png").write_bytes(png)
    page = _render(
        title=title,
        rows={row.policy: row for row in rows},
        learned=learned,
        pictures={name: base64.b64encode(png).decode("ascii") for name, png in drawn.items()},
        scores=tables.before_after(inputs.evaluation),
        fidelity=tables.fidelity(inputs.evaluation),
        files=tables.counts("raw file", inputs.validation.get("files")),
        quarantine=tables.quarantine(inputs.validation),
        splits=tables.counts("split", inputs.manifest.get("splits")),
        gate=inputs.registration,
        transcripts=samples(inputs.rollouts),
        timings=inputs.timings,
        time_parts=list(pictures.TIME_PARTS),
        built_here="clean" in inputs.evaluation["policies"],
    )
    (folder / "index.html").write_text(page, encoding="utf-8")


def _render(**values: object) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # everything that is put in is escaped: task texts and model outputs are not to be trusted
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["number"] = tables.number
    return environment.get_template(_TEMPLATE).render(**values)
