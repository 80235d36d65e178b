"""`envace benchmark` as a person meets it: what is refused before anything starts, and what a run leaves."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envace.benchmarks import harness
from envace.benchmarks.bfcl import BFCL
from envace.benchmarks.protocol import Agent
from envace.errors import ConfigError, EnvaceError
from flows.benchmark_command import benchmark_app
from flows.benchmark_request import EndpointRequest, answer_tokens, specs
from flows.benchmark_server import served
from flows.benchmark_subset import is_wanted, score_subset
from flows.benchmark_whole import require_benchmark, score_whole
from flows.registry_commands import evaluate
from tests.policy_server import policy_server, says
from tests.unit.benchmarks.fake_harness import fake_benchmark

AT = ("--base-url", "http://127.0.0.1:1/v1", "--model", "m")
REHEARSAL = ("--agent", "rehearsal", "--rehearsal-n", "8")


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
        (("run", "fake", "--agent", "oracle", "--version", "tiny/1", "--no-track"), "says nothing about a version"),
        (("run", "fake", "--checkpoint", "a", "--base-url", "http://127.0.0.1:1/v1"), "not both"),
        (("run", "fake", "--checkpoint", "a"), "config.json with max_position_embeddings cannot be read"),
        (("run", "fake", "--agent", "oracle", "--judge-url", "http://x/v1"), "--judge-url is of no use to Fake: no"),
        (("run", "fake", *AT, "--agent", "rehearsal"), "needs --rehearsal-mode parallel or sequential"),
        (("run", "fake", *AT, "--agent", "rehearsal", "--rehearsal-mode", "parallel"), "and --rehearsal-n"),
        (("run", "fake", *AT, *REHEARSAL, "--rehearsal-mode", "both"), "needs --rehearsal-mode parallel"),
        (("run", "fake", *AT, "--rehearsal-model", "base"), "--rehearsal-model goes with --agent rehearsal alone"),
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


@pytest.mark.parametrize(
    ("option", "value"), [("--trials", "2"), ("--option", "a=1"), ("--user-url", "http://x/v1"), ("--judge-url", "x")]
)
def test_bfcl_refuses_what_it_would_ignore(tmp_path: Path, option: str, value: str) -> None:
    nobody = EndpointRequest(None, None, None, 0.0, 1.0, 9, 1)
    given = {"--trials": {"trials": 2}, "--option": {"options": ["a=1"]}}.get(option, {})
    someone = EndpointRequest("http://x/v1", "m", None, 0.0, 1.0, 9, 1)
    user, judge = (someone if option == name else nobody for name in ("--user-url", "--judge-url"))
    with pytest.raises(ConfigError, match=f"{option} is of no use to BFCL v4"):
        specs(BFCL, Agent(kind="oracle"), nobody, user, judge=judge, **given)


def a_checkpoint(folder: Path, context: int, weights: str = "x") -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": context}), encoding="utf-8")
    (folder / "weights").write_text(weights, encoding="utf-8")
    return folder


def test_an_answer_leaves_a_checkpoints_context_room_for_questions(tmp_path: Path) -> None:
    small, large, said = a_checkpoint(tmp_path / "s", 2048), a_checkpoint(tmp_path / "l", 40960), []
    assert answer_tokens(None, large, said.append) == answer_tokens(None, None, said.append) == 4096 and said == []
    assert answer_tokens(None, small, said.append) == 512 and answer_tokens(2000, small, said.append) == 2000
    assert said == [f"--max-tokens 512: a quarter of the 2048 tokens that fit {small}"]
    with pytest.raises(ConfigError, match=r"leaves no room for a question: .* takes 2048 tokens"):
        answer_tokens(2048, small, said.append)


def test_runs_on_a_checkpoint_are_told_apart_by_its_content(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with policy_server(lambda body: says("Sunny.")) as url:
        monkeypatch.setattr("flows.benchmark_server.served", lambda *_: nullcontext((url, "policy")))
        for weights in ("x", "y", "y"):
            shutil.rmtree(project / "policy", ignore_errors=True)
            a_checkpoint(project / "policy", 2048, weights)
            envace("run", "fake", "--checkpoint", "policy", "--no-track")
    found = [json.loads(path.read_text()) for path in project.glob("results/benchmarks/fake/*/provenance.json")]
    assert len(found) == 2
    assert {record["spec"]["policy"]["sampling"]["max_tokens"] for record in found} == {512}
    hashes = {record["spec"]["checkpoint_sha256"] for record in found}
    names = [path.name for path in project.glob("results/benchmarks/fake/*")]
    assert len(hashes) == 2 and all(any(sha[:8] in name for name in names) for sha in hashes)


def test_a_checkpoint_is_served_until_the_block_ends(tiny_policy: Path) -> None:
    said: list[str] = []
    with (
        served(tiny_policy, 1, said.append) as (address, name),
        urllib.request.urlopen(f"{address}/models", timeout=5) as answer,
    ):
        assert [model["id"] for model in json.load(answer)["data"]] == [name]
    assert name == tiny_policy.resolve().name and address in said[0]
    with pytest.raises(OSError):
        urllib.request.urlopen(f"{address}/models", timeout=5)


def test_a_whole_benchmark_is_run_on_a_versions_checkpoint(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="there are: fake"):
        evaluate("1", benchmark="other")  # before anything is played
    require_benchmark("fake", project)
    recorded: list[tuple[str, str]] = []
    monkeypatch.setattr(
        "envace.tracking.public_benchmark.record_benchmark", lambda folder, model, root: recorded.append(model)
    )
    with policy_server(lambda body: says("Sunny.")) as url:
        monkeypatch.setattr("flows.benchmark_whole.served", lambda *_: nullcontext((url, "policy")))
        score_whole("fake", a_checkpoint(project / "policy", 2048), project, "envace-tiny/3")
    (path,) = project.glob("results/benchmarks/fake/envace-tiny-*/provenance.json")
    record = json.loads(path.read_text())
    assert recorded == [("envace-tiny", "3")] and record["model_version"] == "envace-tiny/3" and not record["subset"]


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

    def unwritable(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("flows.benchmark_subset.served", lambda *_: nullcontext(("http://127.0.0.1:1/v1", "policy")))
    monkeypatch.setattr("flows.benchmark_subset.run_all", unwritable)
    score_subset(tmp_path / "policy", tmp_path, "tiny/1")
    assert "was not scored: OSError: the disk is full" in "".join(capsys.readouterr())


def test_a_checkpoint_that_cannot_be_served_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(EnvaceError, match=r"could not be served: .*no config.json"),
        served(tmp_path, 1, print),
    ):
        pass
