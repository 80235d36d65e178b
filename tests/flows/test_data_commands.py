"""`envace data`: exit codes, what is printed where, and a table that every width can hold."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from envace.data.sample import build_world
from envace.data.sample.row_faults import ROW_FAULTS
from envace.data.sample.rows import stream_rows
from envace.data.sample.writing import write_rows
from flows.data_commands import data_app

APP = typer.Typer()
APP.add_typer(data_app, name="data")


@APP.callback()
def _root() -> None:
    """So that `data` is a command below, as in the program."""


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """The commands set handlers; a test leaves those of pytest."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Works in an empty folder."""
    monkeypatch.chdir(tmp_path)


def run(*arguments: str, **environment: str):  # the result of one command
    return CliRunner().invoke(APP, ["data", *arguments], env=environment)


def test_a_sample_is_written_and_passes_its_own_check() -> None:
    made = run("sample", "--rows", "6", "--row-bytes", "53000", "--seed", "1", "--out", "a.json")
    assert made.exit_code == 0 and made.stdout.startswith("a.json: 6 rows, ") and made.stderr == ""
    assert abs(Path("a.json").stat().st_size / 6 / 53_000 - 1) < 0.3
    checked = run("check", "a.json")
    assert checked.exit_code == 0
    assert "6 rows in, 6 kept" in checked.stdout and "the pipeline takes this file" in checked.stdout
    assert [path.name for path in Path().iterdir()] == ["a.json"]


@pytest.mark.parametrize("partition", ["train", "heldout", "hard"])
def test_a_sample_of_a_partition_is_that_of_the_library(partition) -> None:
    assert run("sample", "--rows", "5", "--seed", "3", "--out", "a.jsonl", "--partition", partition).exit_code == 0
    write_rows(Path("b.jsonl"), stream_rows(build_world(3), 5, 3, partition))
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--rows", "0", "--out", "a.json"), "rows"),
        (("--rows", "2", "--out", "a.csv"), "must end in .json"),
        (("--rows", "2", "--out", "a.json", "--row-bytes", "10"), "40000 to 100000"),
        (("--rows", "2", "--out", "a.json", "--faulty-share", "2"), "faulty-share"),
        (("--rows", "2", "--out", "a.json", "--partition", "test"), "partition"),
    ],
)
def test_a_wrong_sample_is_refused_in_words(arguments: tuple[str, ...], told: str) -> None:
    result = run("sample", *arguments)
    assert result.exit_code == 2 and told in result.output and "Traceback" not in result.output
    assert list(Path().iterdir()) == []


def test_the_schema_is_printed_as_json() -> None:
    result = run("schema")
    assert result.exit_code == 0
    schema = json.loads(result.stdout)
    Draft202012Validator.check_schema(schema)
    assert all(Draft202012Validator(schema).is_valid(row) for row in stream_rows(build_world(0), 20, 0, "train"))


@pytest.fixture
def faulty_file() -> Path:
    """A file with one fault of each kind that the sample knows, and one file-wide fault."""
    write_rows(Path("faulty.json"), stream_rows(build_world(0), 200, 0, "train", None, len(ROW_FAULTS) / 200))
    return Path("faulty.json")


def test_the_table_names_each_fault_and_what_to_do(faulty_file: Path) -> None:
    result = run("check", str(faulty_file), COLUMNS="400")
    assert result.exit_code == 1
    told = json.loads(run("check", str(faulty_file), "--json").stdout)
    rejected = [finding for finding in told["findings"] if finding["severity"] == "rejected"]
    assert {finding["check"] for finding in rejected} == {fault.check_id for fault in ROW_FAULTS}
    for finding in told["findings"]:
        for part in (f"{finding['row']} ({finding['place']})", finding["task_id"], finding["pointer"]):
            assert part in result.stdout
        assert finding["advice"] in result.stdout and finding["detail"] in result.stdout
    assert f"{told['rows']} rows in, {told['kept']} kept" in result.stdout
    assert f"{told['quarantined']} quarantined" in result.stdout and told["quarantined"] == len(ROW_FAULTS)


@pytest.mark.parametrize("columns", [1, 60, 80, 140, 250])
def test_every_width_holds_the_whole_table(faulty_file: Path, columns: int) -> None:
    result = run("check", str(faulty_file), COLUMNS=str(columns))
    table = result.stdout.split(f"{faulty_file}: ")[0].splitlines()
    assert len(table) > 40 and max(map(len, table)) <= max(60, columns)
    told = json.loads(run("check", str(faulty_file), "--json").stdout)
    own = sum((one["advice"] + one["detail"]).count("…") for one in [*told["findings"], *told["run"]])
    assert "".join(table).count("…") == own  # nothing was cut


def test_a_run_that_would_fail_says_so() -> None:
    rows = list(stream_rows(build_world(0), 3, 0, "train"))
    write_rows(Path("a.json"), [{**row, "score": 1} for row in rows])
    result = run("check", "a.json")
    assert result.exit_code == 1
    assert "the run would fail by check 2: unknown column 'score'" in result.stdout
    assert "whole file" in result.stdout and "3 kept" in result.stdout


def test_findings_beyond_the_limit_are_counted(faulty_file: Path) -> None:
    result = run("check", str(faulty_file), "--limit", "2")
    assert "not shown, raise --limit" in result.stdout
    told = json.loads(run("check", str(faulty_file), "--limit", "2", "--json").stdout)
    everything = json.loads(run("check", str(faulty_file), "--json").stdout)
    assert len(told["findings"]) == 2
    assert sum(told["not_shown"].values()) == len(everything["findings"]) - 2


@pytest.mark.parametrize("content", [b"", b"[{", b"hello", b"\xff\xfe[]", b"[1, 2"])
def test_an_unreadable_file_is_one_message_and_exit_code_2(content: bytes) -> None:
    Path("a.json").write_bytes(content)
    result = run("check", "a.json")
    assert result.exit_code == 2 and result.stdout == ""
    assert result.stderr.startswith("envace: a.json") and len(result.stderr.splitlines()) == 1
    assert run("check", ".").exit_code == run("check", "nowhere.json").exit_code == 2


def test_data_in_square_brackets_is_no_markup() -> None:
    row = next(stream_rows(build_world(0), 1, 0, "train"))
    row["messages"][0]["role"] = "[red]robot[/red]"
    write_rows(Path("a.json"), [row])
    assert "[red]robot[/red]" in run("check", "a.json", COLUMNS="200").stdout


def test_help_and_schema_do_not_load_what_is_heavy() -> None:
    heavy = ("torch", "pyarrow", "prefect", "mlflow", "great_expectations", "rich.table")
    code = f"import sys, flows.data_commands; print([m for m in {heavy!r} if m in sys.modules])"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=_root_folder())
    assert made.stdout.strip() == "[]"


def _root_folder() -> Path:
    return Path(__file__).resolve().parents[2]
