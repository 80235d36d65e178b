"""A registered version evaluated later: the figures are tied to it, and two versions become comparable again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envace.config import Params
from envace.errors import TrackingError
from envace.files import read_json, sha256_tree, write_json
from envace.tracking.promotion import promote
from envace.tracking.register import register
from envace.tracking.store import open_store
from envace.tracking.version_evaluation import record_evaluation, version_to_evaluate


def score(project: Path, reward: float) -> None:
    path = project / "reports/evaluation/metrics.json"
    evaluation = read_json(path)
    evaluation["policies"]["trained"]["heldout"]["true"]["reward"] = reward
    write_json(path, evaluation)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_champion_measured_on_todays_benchmark_can_be_beaten_on_it(
    finished_project: Callable[..., Path], params: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = finished_project()
    first = register(params, project)
    name, weights = first.model_name, sha256_tree(project / "models/policy")
    (project / "models/policy/note.json").write_text('"second"', encoding="utf-8")
    score(project, 0.9)
    other = params.evaluate_policy.model_copy(update={"seed": params.evaluate_policy.seed + 1})
    today = params.model_copy(update={"evaluate_policy": other})
    second = register(today, project)
    assert (second.version, second.aliases) == ("2", ["challenger"])
    assert "another benchmark" in (promote(today, name, "2", project) or "")

    champion = version_to_evaluate(name, "champion", project)
    assert champion.version == "1" and sha256_tree(champion.checkpoint) == weights
    figures = read_json(project / "reports/evaluation/metrics.json")["policies"]["trained"]
    figures["heldout"]["true"]["reward"] = 0.86
    write_json(project / "later/metrics.json", {"policies": {"trained": figures}})
    run_id = record_evaluation(today, champion, project / "later/metrics.json", project, project)

    client = open_store(project)
    tags = client.get_model_version(name, "1").tags
    assert tags["evaluated_reward"] == "0.86" and tags["evaluated_run_id"] == run_id
    assert tags["heldout_reward"] == "0.83", "what was registered stays"
    run = client.get_run(run_id)
    assert run.info.status == "FINISHED" and run.data.tags["model_version"] == "1"
    assert run.data.metrics["evaluation/trained.heldout.true.reward"] == 0.86
    with monkeypatch.context() as patched:
        patched.setattr(type(client), "set_model_version_tag", interrupt)
        with pytest.raises(KeyboardInterrupt):
            record_evaluation(today, champion, project / "later/metrics.json", project, project)
    assert "evaluated_benchmark_sha256" not in client.get_model_version(name, "1").tags
    record_evaluation(today, champion, project / "later/metrics.json", project, project)
    assert promote(today, name, "2", project) is None
    assert str(client.get_model_version_by_alias(name, "champion").version) == "2"


def test_a_version_that_is_not_there_is_told_with_those_that_are(
    finished_project: Callable[..., Path], params: Params
) -> None:
    project = finished_project()
    done = register(params, project)
    with pytest.raises(TrackingError, match=f"{done.model_name}/1"):
        version_to_evaluate(done.model_name, "7", project)
