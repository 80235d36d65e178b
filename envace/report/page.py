"""Puts the report together: one HTML page that needs nothing beside it, and the same pictures as PNG files."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from envace.report import pictures, tables
from envace.report.curves import Curves, curves
from envace.report.headline import Row, rows_of
from envace.report.health import Health, health
from envace.report.inputs import Inputs
from envace.report.lineage import lineage
from envace.report.plot_files import plot_files
from envace.report.transcripts import samples


def write_report(inputs: Inputs, title: str, folder: Path) -> None:
    """Write index.html, the pictures and the curves as CSV into `folder`, which is made.

    The same inputs give the same bytes.
    """
    learned, well, rows = curves(inputs.rollouts), health(inputs.rollouts), rows_of(inputs.evaluation)
    drawn = _drawn(learned, well, rows)
    folder.mkdir(parents=True, exist_ok=True)
    for name, png in drawn.items():
        (folder / f"{name}.png").write_bytes(png)
    for name, text in plot_files(learned, well, rows).items():
        (folder / name).write_text(text, encoding="utf-8")
    page = render(
        "page.html.jinja",
        title=title,
        rows={row.policy: row for row in rows},
        learned=learned,
        health=well,
        pictures={name: base64.b64encode(png).decode("ascii") for name, png in drawn.items()},
        scores=tables.before_after(inputs.evaluation),
        fidelity=tables.fidelity(inputs.evaluation),
        groups=tables.by_group(inputs.results),
        two_policies=inputs.evaluation.get("one_policy_each_role") or [],
        gate=inputs.registration,
        lineage=lineage(inputs),
        transcripts=samples(inputs.rollouts),
        not_run=tables.not_run(inputs.results),
        executable=bool(rows),
        built_here="clean" in inputs.evaluation["policies"],
        **_about_data(inputs),
    )
    (folder / "index.html").write_text(page, encoding="utf-8")


def _drawn(learned: Curves, well: Health, rows: list[Row]) -> dict[str, bytes]:
    """All pictures by name; none of what did not occur."""
    drawn = {
        "learning_curve": pictures.learning_curve(learned, rows),
        "before_and_after": pictures.before_and_after(rows) if rows else None,
        "stop_reasons": pictures.stop_reasons(learned),
        "outputs_by_role": pictures.outputs_by_role(learned),
        "rehearsals": pictures.rehearsals(well),
        "verdicts": pictures.verdicts(well) if well.judged else None,
    }
    return {name: png for name, png in drawn.items() if png is not None}


def _about_data(inputs: Inputs) -> dict[str, Any]:
    drift = inputs.validation.get("drift") or []
    return {
        "files": tables.counts("raw file", inputs.validation.get("files")),
        "quarantine": tables.quarantine(inputs.validation),
        "flags": inputs.validation.get("flags") or {},
        "drift": {"compared": len(drift), "beyond": [d["figure"] for d in drift if d["is_beyond"]]},
        "splits": tables.counts("split", inputs.manifest.get("splits")),
    }


def render(template: str, **values: object) -> str:
    """A template of this folder filled in. All is escaped: task texts and model outputs are not to be trusted."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["number"] = tables.number
    return environment.get_template(template).render(**values)
