"""`envace reproduce` on a real registry, git and DVC: identical, different, and the cases in which it must refuse."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from envace.config import Params
from envace.errors import DataError, TrackingError
from envace.tracking.dvc_content import content_md5
from envace.tracking.lineage import read_lineage
from envace.tracking.register import register
from flows.reproduced_outputs import figures_apart
from flows.reproduction import make_worktree, refuse_early, remove_worktree, taken_as_given
from tests.flows.small_project import commit, envace, make_project, run, write

TRAIN = """set -e
mkdir -p data models reports
cp -r data/raw/made/data/prepared data/
cp -r data/raw/made/models/policy models/
cp -r data/raw/made/reports/training data/raw/made/reports/evaluation reports/
cp {outside} reports/training/summary.json
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, tiny_policy: Path, params: Params) -> Path:
    folder = make_project(tmp_path_factory.mktemp("project"), tiny_policy)
    register(params, folder)
    return folder


def own_files(project: Path) -> dict[Path, bytes]:
    """All files but the state of tools, with their content."""
    found = (p for p in project.rglob("*") if not {".envace", ".git", ".dvc"} & set(p.relative_to(project).parts))
    return {p: p.read_bytes() for p in found if p.is_file()}


def test_a_version_is_made_again_from_its_commit_though_all_has_changed_since(project: Path) -> None:
    write(project / "constraints" / "cpu.txt", "a==2\n")
    write(project / "bin" / "train_policy.sh", "exit 1\n")
    commit(project)
    (project / "dvc.lock").unlink()
    before = own_files(project)
    code, out, err = envace(project, "reproduce", "envace-tiny/1")
    assert code == 0, out + err
    assert "identical: all " in out and "fetch_data" in out and "register_model" in out
    assert own_files(project) == before
    assert not list((project / ".envace" / "reproductions").iterdir()), "nothing is left where all is identical"


def test_what_comes_out_otherwise_is_named_with_how_far_it_is_off(project: Path, params: Params) -> None:
    # what a stage reads from outside the repository is the one thing that a commit cannot hold
    outside = project.parent / "outside.json"
    write(outside, '{"x": 0.5, "y": 1}\n')
    write(project / "bin" / "train_policy.sh", TRAIN.format(outside=outside))
    commit(project)
    run(project, sys.executable, "-m", "dvc", "repro", "--quiet")
    register(params, project)
    write(outside, '{"x": 0.625, "y": 1}\n')
    code, out, err = envace(project, "reproduce", "envace-tiny/1")
    assert code == 1, out + err
    assert "1 of " in out and "reports/training/summary.json: x 0.5 -> 0.625 (+0.125)" in out
    (left,) = (project / ".envace" / "reproductions").iterdir()
    assert str(left) in out and (left / "reports/training/summary.json").is_file()


def test_a_stage_that_fails_is_told(project: Path) -> None:
    (project.parent / "outside.json").unlink()
    code, out, _ = envace(project, "reproduce", "envace-tiny/1")
    assert code == 1 and "not reproduced: stage train_policy failed" in out


def test_code_that_was_not_committed_is_refused(project: Path, params: Params) -> None:
    write(project / "constraints" / "new.txt", "b==1\n")
    register(params, project)
    code, out, err = envace(project, "reproduce", "envace-tiny/1")
    assert code == 2 and "not committed (constraints/new.txt)" in err and not out
    (project / "constraints" / "new.txt").unlink()
    write(project / "constraints" / "cpu.txt", "a==3\n")
    commit(project)
    register(params, project)
    found = read_lineage("envace-tiny", "1", project)
    with pytest.raises(TrackingError, match=r"other code than commit \w+ holds \(constraints\)"):
        refuse_early(found, project)


def test_an_unknown_version_and_a_foreign_repository_are_refused(project: Path, tmp_path: Path) -> None:
    code, _, err = envace(project, "reproduce", "envace-tiny/9")
    assert code == 2 and "its versions are envace-tiny/1" in err
    run(tmp_path, "git", "init", "--quiet", ".")
    with pytest.raises(TrackingError, match="is not in this repository"):
        refuse_early(read_lineage("envace-tiny", "1", project), tmp_path)


def test_raw_data_from_outside_is_taken_from_the_cache(project: Path, tmp_path: Path) -> None:
    found = read_lineage("envace-tiny", "1", project)
    text = (
        found.texts["params.yaml"]
        .replace("source: sample", "source: file")
        .replace("train_path: null", "train_path: x")
    )
    own = replace(found, texts={**found.texts, "params.yaml": text.replace("licence: null", "licence: MIT")})
    assert taken_as_given(own) == ["fetch_data"] and taken_as_given(found) == []
    folder = make_worktree(own, project, project / ".dvc" / "cache")
    assert content_md5(folder / "data/raw") == found.lock[0].outs["data/raw"]
    assert not (folder / "data/prepared").exists(), "nothing but the raw data is taken"
    remove_worktree(project, folder)
    with pytest.raises(DataError, match="is gone"):
        make_worktree(own, project, tmp_path / "no-cache")


def test_figures_are_compared_by_how_far_they_are_apart() -> None:
    assert figures_apart('{"a": {"b": 1.0}, "c": 2}', '{"a": {"b": 1.5}, "c": 2}') == "a.b 1.0 -> 1.5 (+0.5)"
    assert figures_apart('{"a": 1}', '{"a": 1 }') == "the same values, written differently"
    assert figures_apart('{"a": "x"}', '{"a": "y"}') == "a other than recorded"
    assert figures_apart('{"s": 1}\n{"s": 2}\n', '{"s": 1}\n{"s": 4}\n') == "line 2.s 2 -> 4 (+2)"
    many = [json.dumps({f"k{i}": i + shift for i in range(9)}) for shift in (0, 1)]
    assert figures_apart(*many).endswith("4 more figures, at most 1 apart")
