"""Tables: our rows beside the paper's, what was not run in plain sight, subsets never in a cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envace.benchmarks.bfcl import BFCL, SIZES
from envace.benchmarks.collect import Run, lines, read_runs
from envace.benchmarks.identity import digest
from envace.benchmarks.metrics import metrics
from envace.benchmarks.paper import paper_rows
from envace.benchmarks.protocol import (
    Agent,
    DriverReport,
    Harness,
    ModelEndpoint,
    Provenance,
    Row,
    Spec,
)
from envace.benchmarks.table_page import markdown, write_table
from envace.benchmarks.tables import Table, table
from envace.errors import BenchmarkError, ConfigError
from envace.files import write_json

LEAN = [name for name in SIZES if not name.startswith("web_search") and name != "memory_vector"]


def endpoint(temperature: float) -> ModelEndpoint:
    values: dict[str, Any] = {"timeout_s": 1, "retries": 0, "deadline_s": 1, "concurrency": 1, "breaker_failures": 1}
    values |= {"breaker_pause_s": 1, "allowed_hosts": [], "api_key_env": None, "base_url": "http://x/v1", "model": "p"}
    return ModelEndpoint.model_validate(
        {**values, "sampling": {"temperature": temperature, "top_p": 0.95, "max_tokens": 9}}
    )


def a_run(
    root: Path,
    name: str,
    *,
    kind: str = "plain",
    passes: float = 0.5,
    number: int = 0,
    temperature: float = 0.6,
    categories: list[str] | None = None,
    only: int | None = None,
    aborted: str | None = None,
) -> None:
    """A finished run whose tasks pass with share `passes`; `only` so many of each category makes it a subset."""
    policy = endpoint(temperature) if kind == "plain" else None
    spec = Spec(
        benchmark="bfcl",
        harness=Harness(name="bfcl-eval", kind="pypi", version="2026.3.23"),
        agent=Agent.model_validate({"kind": kind}),
        policy=policy,
        run=number,
        ids=["x"] if only else None,
    )
    rows = [
        Row(
            run=number,
            task_id=f"{category}_{n}",
            category=category,
            score=float(n < passes * SIZES[category]),
            status="scored",
            official_counted=True,
        )
        for category in categories or LEAN
        for n in range(only or SIZES[category])
    ]
    report = DriverReport(versions={}, data_sha256={}, aborted=aborted)
    found = metrics(BFCL, spec, rows, report)
    record = Provenance(
        spec=spec, driver=report, digest=digest(spec, report), code={}, preflight=None, subset=found.subset,
        policy_name="tiny",
    )  # fmt: skip
    write_json(root / "bfcl" / name / "metrics.json", found.model_dump(mode="json"))
    write_json(root / "bfcl" / name / "provenance.json", record.model_dump(mode="json"))


def made(root: Path, number: int = 1) -> Table:
    runs = read_runs(root)
    whole: list[Run] = [run for run in runs if run.fills_cells]
    return table(number, lines(whole), [run for run in runs if not run.fills_cells])


def cell(found: Table, label: str, head: str, group: str = "BFCL v4") -> str:
    (row,) = [row for row in found.rows if row.label == label]
    (column,) = [n for n, (g, h) in enumerate(zip(found.groups, found.head, strict=True)) if (g, h) == (group, head)]
    return row.cells[column]


def test_without_runs_the_paper_stands_alone_as_printed(tmp_path: Path) -> None:
    found = made(tmp_path)
    assert [row.label for row in found.rows] == [row.label for row in paper_rows(1)]
    assert cell(found, "EnvACE-8B", "Multi") == "45.29"
    assert cell(found, "Qwen3-4B", "Overall") == "41.80"  # as printed, with its last 0
    assert cell(found, "ScaleEnv-8B", "Overall") == "–"  # not published


def test_runs_of_one_digest_give_mean_and_deviation(tmp_path: Path) -> None:
    a_run(tmp_path, "a", passes=0.4)
    a_run(tmp_path, "b", passes=0.6, number=1)
    found = made(tmp_path)
    assert cell(found, "tiny (official)", "Multi") == "50.00 ± 14.14"
    assert "2 of 4 runs" in found.notes[0] and "T = 0.6, top-p 0.95" in found.notes[0]


def test_a_missing_group_is_no_figure_and_neither_is_overall(tmp_path: Path) -> None:
    a_run(tmp_path, "a")
    found = made(tmp_path)
    for head in ("Web", "Memory", "Overall"):
        assert cell(found, "tiny (official)", head) == "–"
    assert cell(found, "tiny (strict)", "NoLive") == "50.00"
    assert "not run: web_search_base" in found.notes[0]


def test_other_settings_stand_in_a_row_of_their_own(tmp_path: Path) -> None:
    a_run(tmp_path, "a", passes=0.4)
    a_run(tmp_path, "b", passes=0.6, temperature=1.0)
    found = made(tmp_path)
    assert [row.cells[2] for row in found.rows if row.label == "tiny (official)"] == ["40.00", "60.00"]
    assert ["T = 0.6" in note for note in found.notes] == [True, False]


@pytest.mark.parametrize("why", [{"only": 3}, {"aborted": "the endpoint died"}])
def test_a_subset_or_a_stopped_run_fills_no_cell(tmp_path: Path, why: dict[str, Any]) -> None:
    a_run(tmp_path, "a", **why)
    found = made(tmp_path)
    assert not [row for row in found.rows if row.ours]
    assert found.subsets[0].startswith("tiny, BFCL v4: simple_python ")
    assert "not comparable with any published figure" in markdown(found)


def test_reference_agents_come_first(tmp_path: Path) -> None:
    a_run(tmp_path, "a")
    a_run(tmp_path, "b", kind="do-nothing", passes=0.0)
    a_run(tmp_path, "c", kind="oracle", passes=1.0)
    ours = [row.label for row in made(tmp_path).rows if row.ours]
    assert [label.split(" ")[0] for label in ours] == ["oracle"] * 2 + ["do-nothing"] * 2 + ["tiny"] * 2


def test_a_run_of_whole_categories_fills_their_cells_in_table_3(tmp_path: Path) -> None:
    a_run(tmp_path, "a", categories=["multi_turn_base", "multi_turn_miss_func"])
    found = made(tmp_path, 3)
    assert cell(found, "tiny (official)", "Base", "BFCL v4 multi-turn") == "50.0"
    assert cell(found, "tiny (official)", "Average", "BFCL v4 multi-turn") == "–"
    assert cell(found, "EnvACE-8B, parallel by EnvACE", "Base", "BFCL v4 multi-turn") == "55.5"


def test_all_three_forms_are_written(tmp_path: Path) -> None:
    a_run(tmp_path, "a")
    paths = write_table("table1", made(tmp_path), tmp_path / "out")
    assert [path.name for path in paths] == ["table1.md", "table1.html", "table1.png"]
    assert "**tiny (official)** [1]" in paths[0].read_text(encoding="utf-8")
    page = paths[1].read_text(encoding="utf-8")
    assert '<th colspan="7">BFCL v4</th>' in page and "tiny (strict) [1]" in page and "src=" not in page
    assert paths[2].read_bytes().startswith(b"\x89PNG")


def test_unknown_tables_and_broken_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are: 1, 3"):
        table(2, [], [])
    (tmp_path / "bfcl/x").mkdir(parents=True)
    (tmp_path / "bfcl/x/metrics.json").write_text("{}", encoding="utf-8")
    with pytest.raises(BenchmarkError, match="remove the folder"):
        read_runs(tmp_path)
