"""The harness's own generation over the tasks of a run, going on where an earlier start of the run has stopped."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bfcl_eval import _llm_response_generation as official
from bfcl_eval.utils import is_memory_prereq

from harnesses.bfcl.handler import NAME, NOTE
from harnesses.bfcl.tasks import Plan, entries_to_generate

Result = dict[str, Any]
_AGAIN = ("not_run", "infra_failure")


def generate(plan: Plan, results: Path, id_file: Path, threads: int) -> None:
    """Run every task that has no result yet; results lie in `results`/NAME in the harness's own format."""
    by_id = plan.chosen_by_id
    if by_id:
        id_file.write_text(json.dumps(_without_result(entries_to_generate(plan), results)), encoding="utf-8")
        official.TEST_IDS_TO_GENERATE_PATH = id_file
    official.main(
        argparse.Namespace(
            model=[NAME],
            test_category=plan.categories,
            temperature=0.0,
            include_input_log=False,
            exclude_state_log=True,
            num_threads=threads,
            num_gpus=1,
            backend="vllm",
            gpu_memory_utilization=0.9,
            result_dir=str(results),
            run_ids=by_id,
            allow_overwrite=by_id,
            skip_server_setup=True,
            local_model_path=None,
            lora_modules=None,
            enable_lora=False,
            max_lora_rank=None,
        )
    )


def read_results(results: Path) -> Iterator[tuple[Path, list[Result]]]:
    """The harness's result files with their lines; a last line that a kill has cut short is left out."""
    for path in sorted((results / NAME).rglob("*_result.json")):
        found = []
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        yield path, found


def keep_finished(results: Path) -> int:
    """Take out what is to be tried again: failures of the infrastructure, which the harness would never repeat.

    Returns how many results stay. Memory tasks are taken out with the conversations they rest on, since these fill
    one memory in order.
    """
    kept = 0
    files = list(read_results(results))
    broken = {_memory_of(r) for path, found in files for r in found if _is_again(r) and is_memory_prereq(r["id"])}
    for path, found in files:
        stay = [r for r in found if not _is_again(r) and (_memory_of(r) is None or _memory_of(r) not in broken)]
        path.write_text("".join(json.dumps(r) + "\n" for r in stay), encoding="utf-8")
        kept += len(stay)
    return kept


def drop_not_run(results: Path) -> None:
    """Take out what a stopped run did not come to, so that the harness does not score it."""
    for path, found in list(read_results(results)):
        stay = [r for r in found if r[NOTE]["status"] != "not_run"]
        path.write_text("".join(json.dumps(r) + "\n" for r in stay), encoding="utf-8")


def scenario_of(task: str) -> str | None:
    """category/scenario of a memory task or of a conversation before it; None for any other task."""
    if not task.startswith("memory_"):
        return None
    category, _, rest = task.replace("_prereq", "").rpartition("_")
    return f"{category}/{rest.split('-')[1]}"


def _memory_of(result: Result) -> str | None:
    return scenario_of(result["id"])


def _is_again(result: Result) -> bool:
    return NOTE not in result or result[NOTE]["status"] in _AGAIN


def _without_result(wanted: dict[str, list[str]], results: Path) -> dict[str, list[str]]:
    done = {result["id"] for _, found in read_results(results) for result in found}
    return {category: [each for each in ids if each not in done] for category, ids in wanted.items()}
