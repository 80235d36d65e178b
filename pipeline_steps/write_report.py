"""Writes the run report: one page and its pictures, from the files that the stages before it left."""

from __future__ import annotations

from pathlib import Path

from envace.config import Params
from envace.files import atomic_path
from envace.report.inputs import read_inputs, read_timings
from envace.report.page import write_report
from envace.report.timings_page import write_timings_page
from envace.stage import stage_main

REPORT, TIMINGS = Path("reports/run"), Path("reports/timings/index.html")


def run(params: Params) -> None:
    """Evaluation, training rollouts, data reports and gate decision -> reports/run: index.html, PNGs and CSVs.

    Beside it, where this project trained the policy, reports/timings/index.html, which is no output of the stage.
    """
    inputs = read_inputs()
    with atomic_path(REPORT) as folder:
        write_report(inputs, params.write_report.title, folder)
    if timings := read_timings(inputs.registration.get("model_sha256")):
        write_timings_page(timings, TIMINGS)
    print(f"open {REPORT / 'index.html'}")


if __name__ == "__main__":
    stage_main("write_report", run)
