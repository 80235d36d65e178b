"""Results, pages and pictures: the figures are those of the evaluations, and words do not say more than they do."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envace.errors import DataError
from envace.experiment.layout import STATE
from envace.experiment.page import CURVES, FOREST, findings, page
from envace.experiment.pictures import forest_rows, points, reference_level
from envace.experiment.plan import Plan
from envace.experiment.publish import DOCS, REPORTS, marks, publish, write_results
from envace.experiment.tables import interval
from envace.files import read_json

Record = dict[str, Any]
ARMS = {
    "envace": {"label": "A"},
    "shared": {"label": "B", "params": {"advantage.baseline": "shared"}},
}


@pytest.fixture
def record(run: Callable[..., Record], make_plan: Callable[..., Plan]) -> Record:
    """Two finished arms and two seeds: gains of 0.2 and 0.1, the same for every task."""
    return run(make_plan(ARMS, compare=[{"arm": "envace", "against": "shared"}]))


def changed(record: Record, low: float, high: float, seed: str = "0", environment: str = "true") -> Record:
    """The record with another interval of the arm envace."""
    made = copy.deepcopy(record)
    found = made["arms"]["envace"]["seeds"][seed]["change"][environment]["reward"]
    found |= {"low": low, "high": high, "mean": (low + high) / 2, "excludes_zero": low > 0 or high < 0}
    return made


def test_intervals_and_spreads_are_of_the_evaluations(record: Record) -> None:
    arm = record["arms"]["envace"]
    for seed in ("0", "1"):
        found = arm["seeds"][seed]
        for environment in ("true", "rehearsed"):
            for figure in ("reward", "success"):
                change = found["change"][environment][figure]
                assert change["mean"] == change["low"] == change["high"] == pytest.approx(0.2)  # no task differs
                assert change["tasks"] == 20 and change["left_out"] == 0 and change["excludes_zero"]
        policies = found["policies"]
        assert set(policies) == {"start", "trained", "ceiling", "control"}
        gained = policies["trained"]["true"]["reward"] - policies["start"]["true"]["reward"]
        assert gained == pytest.approx(0.2)
        assert found["control_change"]["true"]["reward"]["mean"] == pytest.approx(0.02)
    assert arm["all_seeds"]["true"]["reward"]["over_seeds"]["mean"] == pytest.approx(0.2)
    assert arm["spread"]["trained"]["true"]["reward"]["seeds"] == 2
    (compared,) = record["comparisons"]
    assert compared["all_seeds"]["true"]["reward"]["mean"] == pytest.approx(0.1)
    assert len(record["code"]) == 1 and record["unfinished"] == []


def test_a_task_without_a_scorable_rollout_is_left_out_and_counted(
    record: Record, run: Callable[..., Record], make_plan: Callable[..., Plan], tmp_path: Path
) -> None:
    for path in (tmp_path / STATE / "shared").glob("evaluation-*/metrics.json"):
        metrics = read_json(path)
        if "exports" in read_json(path.parent / "job.json"):
            del metrics["by_task"]["true"]["reward"]["t3"], metrics["by_task"]["true"]["success"]["t3"]
            path.write_text(json.dumps(metrics), encoding="utf-8")
    again = run(make_plan(ARMS))["arms"]["envace"]["seeds"]["0"]["change"]
    assert (again["true"]["reward"]["tasks"], again["true"]["reward"]["left_out"]) == (19, 1)
    assert (again["rehearsed"]["reward"]["tasks"], again["rehearsed"]["reward"]["left_out"]) == (20, 0)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ((0.1, 0.2), (0.1, 0.3), "each interval lies above 0 (2 of 2 seeds)"),
        ((-0.2, -0.1), (-0.3, -0.1), "each interval lies below 0 (2 of 2 seeds)"),
        ((-0.1, 0.1), (-0.1, 0.2), "no interval excludes 0 (0 of 2 seeds), so no difference is shown"),
        ((-0.1, 0.1), (0.1, 0.2), "above 0 in 1, below 0 in 0, and includes 0 in 1 of 2 seeds"),
        ((-0.2, -0.1), (0.1, 0.2), "above 0 in 1, below 0 in 1, and includes 0 in 0 of 2 seeds"),
        ((0.0, 0.1), (0.0, 0.1), "no interval excludes 0"),  # an end at 0 does not exclude it
    ],
)
def test_words_follow_the_intervals(record: Record, first: Any, second: Any, said: str) -> None:
    made = changed(changed(record, *first), *second, seed="1")
    (line,) = [x for x in findings(made) if x.startswith("- **envace**, reward with the tools run by code")]
    assert said in line


def test_every_reward_has_its_rehearser_beside_it(record: Record) -> None:
    text = page(record)
    assert "error recall" in text and "0.50 (2 of 4)" in text and "fidelity (exact) 0.900 → 0.900" in text
    table = text[text.index("### Every policy") :]
    assert table.count("| start of training |") == 2  # once a seed, though two arms start from it
    assert table.count("| ceiling: clean references |") == table.count("| control: more supervised steps |") == 2
    assert table.count("| envace: trained |") == table.count("| shared: trained |") == 2


def test_arms_with_starts_of_their_own_show_each_of_them(record: Record) -> None:
    other = copy.deepcopy(record)
    for found in other["arms"]["shared"]["seeds"].values():
        found["policies"]["start"]["true"]["reward"] = 0.123
    other["arms"]["shared"]["spread"]["start"]["true"]["reward"]["mean"] = 0.123
    text = page(other)
    spread, policies = text[text.index("### Spread") : text.index("### Every")], text[text.index("### Every policy") :]
    for name in ("envace", "shared"):
        assert spread.count(f"| start of training (of {name}) |") == 1
        assert policies.count(f"| start of training (of {name}) |") == 2  # once a seed
    assert policies.count("| ceiling: clean references |") == 2  # still shared
    assert spread.count("ceiling: clean references") == page(record).count("ceiling: clean references (of envace)") == 1


def test_what_is_not_finished_is_named(run: Callable[..., Record], make_plan: Callable[..., Plan]) -> None:
    part = run(make_plan(ARMS), arms=["envace"], seeds=[0])
    assert "Not finished, so not shown: envace, seed 1; shared, seed 0; shared, seed 1." in page(part)
    nothing = part | {"arms": {}}
    assert "Nothing of it is finished yet." in page(nothing)


def test_arms_of_different_code_are_told(record: Record) -> None:
    assert "states of the code" not in page(record)
    assert "2 states of the code" in page(record | {"code": ["a", "b"]})


def test_an_interval_is_bold_where_it_excludes_0() -> None:
    found = {"mean": 0.1, "low": 0.05, "high": 0.15, "excludes_zero": True}
    assert interval(found) == "**+0.100 [+0.050, +0.150]**"
    assert interval(found | {"low": -0.05, "excludes_zero": False}) == "+0.100 [-0.050, +0.150]"
    assert interval(None) == "–"


def test_curves_and_levels_are_means_over_seeds(record: Record) -> None:
    assert points(record["arms"]["envace"]) == {0: [0.4, 0.4], 20: [0.6, 0.6]}
    ceilings = [s["policies"]["ceiling"]["true"]["reward"] for s in record["arms"]["envace"]["seeds"].values()]
    assert reference_level(record, "ceiling") == pytest.approx(sum(ceilings) / 2)
    assert reference_level(record | {"arms": {}}, "ceiling") is None
    labels = [label for label, _, _ in forest_rows(record)]
    assert labels[:3] == ["envace − start, seed 0", "envace − start, seed 1", "envace − start, all seeds"]
    assert labels[-1] == "envace − shared, all seeds" and "control − start, seed 0" in labels


def test_results_are_written_with_pictures_the_same_each_time(record: Record, tmp_path: Path) -> None:
    folder = write_results(record, tmp_path, tmp_path / STATE / "p")
    assert folder == tmp_path / REPORTS / "p"
    assert read_json(folder / "results.json") == read_json(tmp_path / STATE / "p/results.json") == record
    before = {name: (folder / name).read_bytes() for name in (CURVES, FOREST, "results.md")}
    assert before[CURVES].startswith(b"\x89PNG") and len(before[FOREST]) > 10_000
    write_results(record, tmp_path, tmp_path / STATE / "p")
    assert before == {name: (folder / name).read_bytes() for name in before}


def test_publishing_replaces_the_generated_part_alone(record: Record, tmp_path: Path) -> None:
    begin, end = marks("p")
    (tmp_path / "docs").mkdir()
    document = tmp_path / DOCS
    document.write_text(f"# Results\n\nMine.\n\n{begin}\nstale\n{end}\n\nMine too.\n", encoding="utf-8")
    publish(record, tmp_path)
    once = document.read_text(encoding="utf-8")
    assert "Mine.\n" in once and once.endswith("Mine too.\n") and "stale" not in once and "### What was found" in once
    assert f"pictures/p_{CURVES}" in once and (tmp_path / "docs/pictures" / f"p_{CURVES}").is_file()
    publish(record, tmp_path)
    assert document.read_text(encoding="utf-8") == once
    document.write_text("# Results\n", encoding="utf-8")
    with pytest.raises(DataError, match="has not once the lines"):
        publish(record, tmp_path)


def test_the_shipped_page_has_a_place_for_every_shipped_plan(project_root: Path) -> None:
    text = (project_root / DOCS).read_text(encoding="utf-8")
    for plan in (project_root / "experiments").glob("*.yaml"):
        assert all(text.count(mark) == 1 for mark in marks(plan.stem))
