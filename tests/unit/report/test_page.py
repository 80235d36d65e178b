"""The page: everything on it, nothing of it trusted, nothing beside it needed."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from envace.errors import DataError
from envace.files import read_json, write_json
from envace.report.headline import headline, markdown, table
from envace.report.inputs import read_inputs, read_timings
from envace.report.page import write_report
from envace.report.timings_page import write_timings_page
from envace.rollout.records import read_rollouts, write_rollouts

HOSTILE = "</dd><script>alert('x')</script><img src=x onerror=alert(1)> & {{ 7*7 }} \u202e\x00"


class Tags(HTMLParser):
    """Collects tags and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


@pytest.fixture
def project(finished_project: Callable[..., Path]) -> Path:
    return completed(finished_project())


def completed(folder: Path) -> Path:
    counts = {"rows": 400, "kept": 390, "flagged": 4, "quarantined": 10, "evidence": {"matched": 3}}
    checks = [{"id": 8, "field": "content", "rule": "is not blank"}]
    kept_out = {"8": 1, "9": 1}
    validation = {"files": {"train": counts, "heldout": {"rows": 120}}, "checks": checks, "rejected_by": kept_out}
    validation |= {"source": {"origin": "the bundled sample, seed 0", "licence": "ours"}}
    validation |= {"flags": {"recorded_tool_error": 32}, "drift": [{"figure": "mean turns", "is_beyond": False}]}
    write_json(folder / "reports/validation/validation.json", validation)
    splits = {"train": {"tasks": 351, "calls": 9}}
    write_json(folder / "data/prepared/manifest.json", {"splits": splits, "sha256": {"tasks.parquet": "ef" * 32}})
    floors = [{"figure": "reward", "required": 0.08, "gained": 0.14, "holds": True}]
    floors += [{"figure": "success", "required": 0.2, "gained": None, "holds": False}]
    decision = {
        "model_name": "m",
        "model_sha256": "ab" * 32,
        "data_sha256": "cd" * 32,
        "floors": floors,
        "floors_hold": False,
    }
    write_json(folder / "reports/registration/registration.json", decision)
    return folder


def page(project: Path, title: str = "A title") -> str:
    write_report(read_inputs(project), title, project / "run")
    return (project / "run" / "index.html").read_text(encoding="utf-8")


def test_the_page_holds_what_a_reader_looks_for(project: Path) -> None:
    text = page(project)
    assert "0.690 → 0.830" in text and "0.110 → 0.470" in text
    assert "removal of those systematic faults" in text and "ceiling" in text and "control" in text
    assert "error recall" in text and "0.200" in text
    assert "<td>390</td>" in text and "351" in text and "matched" not in text
    assert "content: is not blank" in text and "check 9" in text
    assert "does not hold" in text and "not measured" in text
    assert "Public benchmarks" in text
    assert "12 with a reward,\n1 without one" in text
    assert text.count("data:image/png;base64,") == 5
    assert "recorded tool error 32" in text and "0 of 1 figures are beyond the bound" in text


def test_fidelity_and_error_recall_stand_beside_every_reward(project: Path) -> None:
    text = page(project)
    scores = text[text.index("<h2>Before and after") : text.index("<h2>Rehearsal fidelity")]
    first = scores[: scores.index("</table>")]
    assert re.findall(r"<th[^>]*>([^<]+)</th>", first)[-6:-4] == ["equals the record", "error recall"]
    assert re.findall(r"<td>([^<]+)</td>", first[first.index("<th>trained") :])[6:8] == ["0.760", "0.200"]


def test_results_by_group_and_what_was_not_run(project: Path) -> None:
    text = page(project)
    assert "Held-out tasks: reward by length" in text and "<th>turns: 1</th><td>30</td><td>0.500 ± 0.020</td>" in text
    assert "turns: 2" not in text and "</b>: BFCL v4." in text


def test_the_lineage_has_hashes_and_no_ids(project: Path) -> None:
    text = page(project)
    section = text[text.index("<h2>Lineage") : text.index("<h2>Sample")]
    assert re.findall(r'title="(\w+)"', section) == ["cd" * 32, "ef" * 32, "ab" * 32, "d1" * 32]
    assert "the bundled sample, seed 0" in section and "envace lineage m/VERSION" in section


def test_a_judge_is_told_with_its_unknown_verdicts(project: Path) -> None:
    text = page(project)
    assert "every reward was decided by code" in text and "<b>A judge</b>" in text
    path = project / "reports/training/rollouts.parquet"
    rows = read_rollouts(path)
    for row in rows:
        said = {"c1": "pass", "c2": "unknown" if row["step"] == 3 else "fail"}
        row["turns"] = json.dumps([{**turn, "verdicts": said} for turn in row["turns"]])
    write_rollouts(path, rows, ("step", "phase"))
    text = page(project)
    assert "26 verdicts" in text and "50.0 % of them were <i>unknown" in text and "<b>A judge</b>" not in text
    assert (project / "run" / "verdicts.png").read_bytes().startswith(b"\x89PNG")


def test_two_policies_are_named(project: Path) -> None:
    assert "Two policies" not in page(project)
    path = project / "reports/evaluation/metrics.json"
    write_json(path, {**read_json(path), "one_policy_each_role": ["trained"]})
    assert "What is registered is the policy that acts" in page(project)


def test_the_curves_are_there_for_dvc_plots(project: Path) -> None:
    page(project)
    with (project / "run" / "training.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["1", "2", "3"]
    assert [float(row["reward"]) for row in rows] == [pytest.approx(0.2 * s + 0.05, abs=1e-6) for s in (1, 2, 3)]
    assert {row["malformed_rehearsals"] for row in rows} == {"0.000000"} and float(rows[2]["completed"]) == 0.8
    heldout = (project / "run" / "heldout.csv").read_text(encoding="utf-8").splitlines()
    assert heldout[0] == "policy,reward,success,fidelity_exact,error_recall"
    assert "trained,0.830000,0.470000,0.760000,0.200000" in heldout
    assert (project / "run" / "validation.csv").read_text(encoding="utf-8").startswith("step,reward,success\n0,0.5")


def timings(model_sha256: str) -> dict[str, object]:
    parts = {"generation": 2.0, "judging": 0.5, "update": 3.0, "sync": 0.1, "checkpoint": 0.2, "waiting": 0.4}
    split = {**parts, "whole": 6.2, "validation": 0.0, "tokens_per_s": 900.0}
    return {"model_sha256": model_sha256, "mean": split, "steps": [{**split, "step": 1}, {**split, "step": 2}]}


def test_the_time_of_a_step_is_on_a_page_of_its_own_where_it_is_that_of_this_policy(project: Path) -> None:
    without = page(project)
    write_json(project / "reports/timings/timings.json", timings("ab" * 32))
    known = read_timings("ab" * 32, project)
    assert known is not None
    write_timings_page(known, project / "timings.html")
    text = (project / "timings.html").read_text(encoding="utf-8")
    assert "A step took 6.2 s on average" in text and "judging 0.5 s" in text and "900 tokens a second" in text
    assert text.count("data:image/png;base64,") == 1
    assert page(project) == without, "the report holds no durations: they differ from run to run"
    for other in (timings("cd" * 32), {}, []):
        write_json(project / "reports/timings/timings.json", other)
        assert read_timings("ab" * 32, project) is None
    (project / "reports/timings/timings.json").write_text("{")
    assert read_timings("ab" * 32, project) is None


def test_a_given_base_policy_says_so_and_shows_no_ceiling(finished_project: Callable[..., Path]) -> None:
    text = page(completed(finished_project(beside=False)))
    assert "given as a checkpoint" in text and "removal of those" not in text
    assert not re.search(r"<th>(ceiling|control)</th>", text)


def test_it_needs_nothing_beside_it_and_runs_nothing(project: Path) -> None:
    found = Tags()
    found.feed(page(project))
    assert not {"script", "link", "iframe", "object"} & set(found.tags)
    assert all((v or "").startswith("data:") for k, v in found.attributes if k == "src")
    assert {v for k, v in found.attributes if k == "href"} == {"../timings/index.html"}, "to follow, not to load"
    assert not [k for k, _ in found.attributes if k.startswith("on")]


def test_untrusted_text_is_shown_and_not_obeyed(project: Path) -> None:
    path = project / "reports/training/rollouts.parquet"
    rows = read_rollouts(path)
    for r in rows:
        for output in r["outputs"]:
            output["text"] = HOSTILE
        r["task_id"] = "<b>id</b>"
        r["turns"] = json.dumps([{**turn, "user": HOSTILE} for turn in r["turns"]])
    write_rollouts(path, rows, ("step", "phase"))
    text = page(project, title="<script>title</script>")
    found = Tags()
    found.feed(text)
    assert "script" not in found.tags and "<b>id" not in text
    assert not [k for k, _ in found.attributes if k.startswith("on")]
    assert "alert(&#39;x&#39;)" in text and "{{ 7*7 }}" in text
    assert "\\u202e\\u0000" in text and "\u202e" not in text and "\x00" not in text


def test_the_same_files_give_the_same_bytes(project: Path) -> None:
    page(project)
    first = {p.name: p.read_bytes() for p in (project / "run").iterdir()}
    page(project)
    assert {p.name: p.read_bytes() for p in (project / "run").iterdir()} == first
    assert sorted(first) == [
        "before_and_after.png", "heldout.csv", "index.html", "learning_curve.png", "outputs_by_role.png",
        "rehearsals.png", "stop_reasons.png", "training.csv", "validation.csv",
    ]  # fmt: skip


def test_tasks_without_executable_tools_are_not_shown_as_0(project: Path) -> None:
    path = project / "reports/evaluation/metrics.json"
    evaluation = read_json(path)
    for found in evaluation["policies"].values():
        found["heldout"]["true"] = None
        del found["hard"]
    write_json(path, evaluation)
    text = page(project)
    assert "<td>–</td>" in text and "0.690 →" not in text
    assert headline(project) == [] and markdown([]) == "Not evaluated yet."


@pytest.mark.parametrize(
    ("path", "stage"),
    [
        ("reports/training/rollouts.parquet", "train_policy"),
        ("reports/evaluation/metrics.json", "evaluate_policy"),
        ("reports/registration/registration.json", "register_model"),
    ],
)
def test_a_missing_file_names_its_stage(project: Path, path: str, stage: str) -> None:
    (project / path).unlink()
    with pytest.raises(DataError, match=f"{path}: not found; stage {stage} writes it"):
        read_inputs(project)


@pytest.mark.parametrize("text", ["{", "[1]"])
def test_a_broken_file_is_named(project: Path, text: str) -> None:
    (project / "reports/evaluation/metrics.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"evaluation/metrics\.json"):
        read_inputs(project)


def test_the_headline_as_text_and_as_markdown(project: Path) -> None:
    rows = headline(project)
    assert [r.policy for r in rows] == ["base", "trained", "clean", "control"]
    assert table(rows)[1].split() == ["base", "(start", "of", "training)", "0.690", "±", "0.020", "0.110", "±", "0.040"]
    assert "| trained by rehearsal | 0.830 ± 0.020 | 0.470 ± 0.040 |" in markdown(rows)
    assert headline(project / "nowhere") == [] and table([]) == ["held-out tasks: not evaluated yet"]
