"""Some tasks of every kind through the real harness: the references bracket it, failures never pass, attacks do
nothing. Six runs in one process of the driver; the run with wrong and hostile calls comes before the oracle's.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.harnesses.bfcl.conftest import Ran, endpoint, left, spec
from tests.policy_server import policy_server, says

MULTI = [f"multi_turn_base_{n}" for n in (0, 1, 2, 3, 15)]  # the last has the tools for mathematics
TASKS = [
    *("simple_python_0", "simple_java_3", "simple_java_36", "simple_javascript_1", "multiple_0", "parallel_0"),
    *("parallel_multiple_0", "live_multiple_0-0-0", "live_simple_0-0-0", "live_relevance_0-0-0"),
    *("irrelevance_0", "multi_turn_miss_func_0"),
    *(
        "multi_turn_miss_param_0",
        "multi_turn_long_context_1",
        *MULTI,
        "web_search_base_0",
        "memory_vector_0-customer-0",
    ),
]
UNPASSABLE = "simple_java_36"
FAULTY = [f"irrelevance_{n}" for n in range(9)]
BIG = "x" * (1 << 20)


def faulty(index: int) -> dict[str, Any] | bytes | int | tuple[int, bytes]:
    """What the endpoint answers to each of the irrelevance tasks, where an abstention would be right."""
    answers: list[Any] = [
        says("None of the tools can do that."),
        says(None),
        says("\ufffd\ufffd\x07#@!"),
        says('<tool_call>{"name": "determine_body_mass_index", "argum'),
        says(None, ("determine_body_mass_index", '{"weight": ')),
        says(None, ("determine_body_mass_index", json.dumps({"weight": BIG}))),
        500,
        b"<html>busy</html>",
        (400, b'{"error": {"message": "This model has a maximum context length of 2048 tokens"}}'),
    ]
    return answers[index]


def hostile(index: int, marker: Path) -> dict[str, Any]:
    """What the endpoint answers, always, to each of the multi-turn tasks."""
    write = f"open({str(marker)!r}, 'w').write('x')"
    injected = f'{{"a={write}, b": 1}}'
    attacks = [
        says(None, ("__import__", '{"name": "os"}'), (f"ls() or {write} or ls", "{}"), ("ls", injected)),
        says(None, ("ls", "{}")),  # for ever
        says(None, ("touch", json.dumps({"file_name": BIG}))),
        says(None, ("open", json.dumps({"file": str(marker), "mode": "w"})), ("exec", json.dumps({"source": write}))),
        says(None, ("logarithm", '{"value": 3, "base": 2, "precision": 900000000}')),  # a tool, and hours of work
    ]
    return attacks[index]


@pytest.fixture(scope="module")
def ran(
    drive: Callable[..., str], questions: Callable[[str], list[str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    root = tmp_path_factory.mktemp("bfcl")
    asked = {text: n for n, text in enumerate(questions("irrelevance")[: len(FAULTY)])}
    texts = questions("multi_turn_base")
    turns = {texts[int(task.rpartition("_")[2])]: n for n, task in enumerate(MULTI)}
    served = count()

    def flaky(body: dict[str, Any]) -> dict[str, Any] | int:
        return 500 if next(served) in (1, 2, 3) else says("I cannot do that.")

    def first(body: dict[str, Any]) -> str:
        return next(m["content"] for m in body["messages"] if m["role"] == "user")

    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = taken.getsockname()[1]  # free again when the block ends
    with (
        policy_server(lambda body: faulty(asked[first(body)])) as bad,
        policy_server(lambda body: hostile(turns[first(body)], root / "written")) as attacker,
        policy_server(flaky) as recovering,
    ):
        specs = {
            "faulty": spec("plain", FAULTY, endpoint(bad)),
            "hostile": spec("plain", MULTI, endpoint(attacker), step_s=5),
            "dead": spec("plain", FAULTY, endpoint(f"http://127.0.0.1:{nobody}/v1"), infra_failures=2),
            "again": spec("plain", FAULTY, endpoint(recovering), infra_failures=2),
            "oracle": spec("oracle", TASKS),
            "do-nothing": spec("do-nothing", TASKS),
        }
        said = drive({root / name: each for name, each in specs.items()}, then=[root / "again"])
    yield {"said": said, "asked": next(served), **{name: left(root / name, each) for name, each in specs.items()}}


def test_the_oracle_passes_all_but_what_cannot_pass_also_after_wrong_runs(ran: dict[str, Any]) -> None:
    rows = ran["oracle"].rows
    assert {task for task, row in rows.items() if row.score == 0} == {UNPASSABLE}
    assert {row.status for row in rows.values()} == {"scored", "not_run"}
    assert ran["oracle"].metrics.subset


def test_the_idle_agent_passes_abstentions_alone(ran: dict[str, Any]) -> None:
    rows = ran["do-nothing"].rows
    assert {task for task, row in rows.items() if row.score == 1} == {"irrelevance_0"}


def test_what_the_lean_installation_lacks_is_not_run(ran: dict[str, Any]) -> None:
    for name in ("oracle", "do-nothing"):
        missing = {task: row for task, row in ran[name].rows.items() if row.status == "not_run"}
        assert set(missing) == {"web_search_base_0", "memory_vector_0-customer-0"}
        assert all(row.reason and row.reason.startswith("needs ") for row in missing.values())
        assert ran[name].metrics.official["overall"] is None


def test_failures_never_pass_strictly_and_stay_in_the_denominator(ran: dict[str, Any]) -> None:
    found: Ran = ran["faulty"]
    status = [found.rows[task].status for task in FAULTY]
    assert status == ["scored"] + ["model_failure"] * 5 + ["infra_failure"] * 2 + ["model_failure"]
    assert found.metrics.strict["irrelevance"] == pytest.approx(100 / 9, abs=1e-4)
    assert found.metrics.official["irrelevance"] == 100.0  # what the harness makes of it
    assert all(found.rows[task].reason for task in FAULTY[1:])


def test_a_dead_endpoint_stops_the_run_and_says_so(ran: dict[str, Any]) -> None:
    found: Ran = ran["dead"]
    assert [found.rows[task].status for task in FAULTY] == ["infra_failure"] * 3 + ["not_run"] * 6
    assert found.metrics.strict["irrelevance"] == 0.0
    assert found.metrics.aborted is not None and "127.0.0.1" in found.metrics.aborted
    assert "exit code 3" in ran["said"]


def test_a_hostile_policy_runs_nothing_and_stalls_nothing(ran: dict[str, Any]) -> None:
    found: Ran = ran["hostile"]
    assert not (found.folder.parent / "written").exists()
    assert [found.rows[task].score for task in MULTI] == [0.0] * 5
    assert found.rows[MULTI[0]].status == "model_failure" and "refused" in str(found.rows[MULTI[0]].reason)
    assert "force-terminated" in str(found.rows[MULTI[1]].reason)  # the harness's own cap of steps
    assert "a call of" in str(found.rows[MULTI[2]].reason)
    assert found.rows[MULTI[3]].status == "model_failure"
    # stopped by its silence or its processor time; or out of memory, which the tool tells until the cap of steps
    ends = ("without a word", "processor time", "force-terminated")
    assert any(end in str(found.rows[MULTI[4]].reason) for end in ends)


def test_a_stopped_run_goes_on_with_what_is_not_finished(ran: dict[str, Any]) -> None:
    found: Ran = ran["again"]
    assert {row.status for row in found.rows.values()} == {"scored"} and found.metrics.aborted is None
    assert ran["asked"] == 1 + 3 + 8  # one finished, three failed and the run stopped; the other eight when it went on


def test_where_the_sandbox_has_a_network_it_is_said(ran: dict[str, Any]) -> None:
    report = ran["oracle"].report
    network = report.sandbox["network"]
    assert network == "dropped" or any(network in note for note in report.notes)
