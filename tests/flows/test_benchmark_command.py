"""`envace benchmark` as a person meets it: what is refused before anything starts, and what a run leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envace.benchmarks import harness
from envace.errors import ConfigError, EnvaceError
from flows import benchmark_runs
from flows.benchmark_command import benchmark_app
from flows.benchmark_subset import is_wanted, score_subset
from tests.unit.benchmarks.fake_harness import fake_benchmark


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the harness `fake` and no other."""
    made = fake_benchmark(tmp_path)
    monkeypatch.setattr(harness, "_ENTRIES", {"fake": "tests.flows.test_benchmark_command:FAKE"})
    monkeypatch.setattr(harness, "import_module", lambda name: type("module", (), {"FAKE": made}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def envace(*arguments: str) -> str:
    """What the command prints; errors come as they are."""
    done = CliRunner().invoke(benchmark_app, list(arguments))
    if isinstance(done.exception, EnvaceError):
        raise done.exception
    return f"{done.output}exit code {done.exit_code}"


def test_a_reference_run_is_listed_and_in_the_table(project: Path) -> None:
    assert "installed" in envace("list")
    said = envace("run", "fake", "--agent", "do-nothing", "--no-track")
    assert "irrelevance                50.00 /   50.00" in said and said.endswith("exit code 0")
    assert "(do-nothing, complete)" in envace("list")
    table = envace("table", "1")
    assert "**do-nothing (official)** [1]" in table and "EnvACE-8B" in table
    assert (project / "reports/benchmarks/table1.html").is_file()


def test_a_run_stopped_by_failures_ends_with_1_and_goes_on(project: Path) -> None:
    command = ("run", "fake", "--agent", "do-nothing", "--no-track", "--option", "abort=true")
    said = envace(*command)
    assert "too many; the same command goes on from here" in said and said.endswith("exit code 1")
    assert "infra failures: 1" in said
    assert envace(*command).endswith("exit code 0")


def test_a_secret_in_an_address_is_refused_and_not_repeated(project: Path) -> None:
    more = ("--model", "m", "--no-track")
    for url in ("http://user:hunter2@127.0.0.1/v1", "http://user:hunter2@[::1/v1"):
        with pytest.raises(ConfigError, match="the policy endpoint: ") as caught:
            envace("run", "fake", "--base-url", url, *more)
        assert "hunter2" not in str(caught.value)


def test_several_runs_are_numbered(project: Path) -> None:
    envace("run", "fake", "--agent", "oracle", "--runs", "2", "--no-track")
    specs = [json.loads(p.read_text()) for p in sorted(project.glob("results/benchmarks/fake/*/spec.json"))]
    assert sorted(spec["run"] for spec in specs) == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "fake"), "needs --base-url and --model"),
        (("run", "fake", "--base-url", "http://127.0.0.1:1/v1"), "name of its model"),
        (("run", "fake", "--agent", "oracle", "--category", "x"), "Fake has irrelevance"),
        (("run", "fake", "--agent", "oracle", "--category", "irrelevance", "--id", "a"), "not both"),
        (("run", "fake", "--agent", "oracle", "--option", "x"), "key=value"),
        (("run", "fake", "--agent", "oracle", "--version", "tiny"), "NAME/VERSION"),
        (("run", "fake", "--checkpoint", "a", "--base-url", "http://127.0.0.1:1/v1"), "not both"),
        (("run", "other"), "there are: fake"),
        (("table", "2"), "there are: 1, 3"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_starts(
    project: Path, arguments: tuple[str, ...], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        envace(*arguments)
    assert not (project / "results").exists()


def test_the_subset_is_scored_only_where_the_harness_is_and_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def broken(*_: object) -> Iterator[tuple[str, str]]:
        raise EnvaceError("it cannot be served")
        yield "", ""

    monkeypatch.setattr("flows.benchmark_subset.served", broken)
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy/config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "harnesses/bfcl").mkdir(parents=True)
    (tmp_path / "harnesses/bfcl/requirements.txt").write_text("a==1\n", encoding="utf-8")
    assert not is_wanted(tmp_path / "policy", tmp_path)  # not installed
    monkeypatch.setattr("flows.benchmark_subset.is_installed", lambda *_: True)
    assert is_wanted(tmp_path / "policy", tmp_path) and not is_wanted(tmp_path, tmp_path)
    score_subset(tmp_path / "policy", tmp_path)
    assert "was not scored: it cannot be served" in "".join(capsys.readouterr())


def test_a_checkpoint_that_cannot_be_served_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(EnvaceError, match=r"could not be served: .*no config.json"),
        benchmark_runs.served(tmp_path, 1, print),
    ):
        pass
