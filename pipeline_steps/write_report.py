"""Writes the run report: one page and its pictures, from the files that the stages before it left."""

from __future__ import annotations

from pathlib import Path

from envace.config import Params
from envace.files import atomic_path
from envace.report.inputs import read_inputs
from envace.report.page import write_report
from envace.stage import stage_main

REPORT = Path("reports/run")


def run(params: Params) -> None:
    """Evaluation, training rollouts, data reports and gate decision -> reports/run/index.html and PNGs."""
    inputs = read_inputs()
    with atomic_path(REPORT) as folder:
        write_report(inputs, params.write_report.title, folder)
    print(f"open {REPORT / 'index.html'}")


if __name__ == "__main__":
    stage_main("write_report", run)
