"""`envace doctor`: one line for each thing that a run needs, with what to do about it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

_WORDS = {"ok": "OK", "warning": "warning", "problem": "PROBLEM"}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="The same as one JSON list on stdout.")] = False,
) -> None:
    """Look at machine, installation, parameters, services and stores: does anything get in the way of a run?

    Exit code 1 where there is a problem, else 0. Changes nothing, and asks only this machine's
    servers and those named in params.yaml.
    """
    from envace.doctor.examination import examine

    findings = []
    for finding in examine():
        findings.append(finding)
        if not as_json:
            typer.echo(f"{_WORDS[finding.level]:<8} {finding.about}: {finding.says}")
            if finding.todo:
                typer.echo(f"{'':<8}   -> {finding.todo}")
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False, indent=2))
    else:
        counts = [sum(f.level == level for f in findings) for level in ("problem", "warning")]
        typer.echo(f"{counts[0]} problems, {counts[1]} warnings")
    raise typer.Exit(int(any(f.level == "problem" for f in findings)))
