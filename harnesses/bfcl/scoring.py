"""The harness's own evaluation, in a bounded child; where a task breaks it, that task is found and counts as failed."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bfcl_eval.eval_checker import eval_runner
from bfcl_eval.utils import extract_test_category, get_file_name_by_category

from harnesses.bfcl.generation import Result, read_results
from harnesses.bfcl.handler import NAME
from harnesses.bfcl.sandbox import Bounds, ChildFailedError, Zygote

_CPU_S, _CPU_S_PER_TASK = 120, 1.0
_PATIENCE = 8  # a busy machine: wall-clock seconds for one of processor time


@dataclass(slots=True)
class Scores:
    """correct: task → passed. broken: task → what it did to the scorer. printed: category → percent."""

    correct: dict[str, bool] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    printed: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


def score(results: Path, work: Path, zygote: Zygote, memory_mb: int) -> Scores:
    """Evaluate the result files in `results`; `work` is made anew and holds the harness's score files."""
    shutil.rmtree(work, ignore_errors=True)
    files = {path.relative_to(results): found for path, found in read_results(results) if found}
    files = {path: found for path, found in files.items() if "_prereq_" not in path.name}
    scores = Scores()
    _score(files, work / "all", zygote, memory_mb, scores)
    if scores.broken:  # the harness has printed no figure for a category that it could not evaluate as a whole
        for path, found in files.items():
            marks = [scores.correct[result["id"]] for result in found]
            scores.printed[extract_test_category(path)] = 100 * sum(marks) / len(marks)
    return scores


def evaluate_in_child(task: dict[str, Any]) -> bool:
    """In the sandbox: the harness's main function over one folder of results."""
    eval_runner.main([NAME], task["categories"], task["results"], task["scores"], partial_eval=True)
    return True


def _score(files: dict[Path, list[Result]], work: Path, zygote: Zygote, memory_mb: int, scores: Scores) -> None:
    """All of them at once; if that breaks, halves, until the task that breaks it stands alone."""
    count = sum(map(len, files.values()))
    if not count:
        return
    results, marks = work / "result", work / "score"
    for path, found in files.items():
        (results / path).parent.mkdir(parents=True, exist_ok=True)
        (results / path).write_text("".join(json.dumps(result) + "\n" for result in found), encoding="utf-8")
    marks.mkdir(parents=True, exist_ok=True)
    cpu_s = int(_CPU_S + count * _CPU_S_PER_TASK)
    task = {"results": str(results), "scores": str(marks), "categories": [extract_test_category(p) for p in files]}
    try:
        zygote.run({"evaluate": task}, Bounds(_PATIENCE * cpu_s, cpu_s, memory_mb), lambda asked: None)
    except ChildFailedError as error:
        if count == 1:
            ((found,),) = files.values()
            scores.correct[found["id"]] = False
            scores.broken[found["id"]] = f"the harness could not score it: {error}"
            return
        for name, half in zip(("a", "b"), _halves(files), strict=True):
            _score(half, work / name, zygote, memory_mb, scores)
        return
    _read_marks(files, marks, scores)


def _halves(files: dict[Path, list[Result]]) -> tuple[dict[Path, list[Result]], dict[Path, list[Result]]]:
    if len(files) > 1:
        names = list(files)
        first = set(names[: len(names) // 2])
        return {n: files[n] for n in names if n in first}, {n: files[n] for n in names if n not in first}
    ((path, found),) = files.items()
    middle = len(found) // 2
    return {path: found[:middle]}, {path: found[middle:]}


def _read_marks(files: dict[Path, list[Result]], marks: Path, scores: Scores) -> None:
    for path, found in files.items():
        category = extract_test_category(path)
        (file,) = marks.rglob(get_file_name_by_category(category, is_score_file=True))
        head, *failed = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        wrong = {item["id"]: _words(item) for item in failed}
        for result in found:
            scores.correct[result["id"]] = result["id"] not in wrong
        scores.errors |= wrong
        scores.printed[category] = 100 * head["accuracy"]


def _words(failed: dict[str, Any]) -> str:
    error = failed.get("error")
    kind = failed.get("error_type") or (error.get("error_type") if isinstance(error, dict) else None)
    text = error.get("error_message", error) if isinstance(error, dict) else error
    return f"{kind}: {json.dumps(text, ensure_ascii=False, default=str)}"[:500]
