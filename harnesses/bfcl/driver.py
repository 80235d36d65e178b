"""Runs BFCL v4 in the harness's venv: `python driver.py FOLDER …`. Each folder's spec.json is one run.

Each run is a process of its own, forked from one that has only imported the harness: its state is global, and after a
run with wrong calls it would score the next one differently.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from envace.benchmarks.protocol import ABORTED, DRIVER_REPORT, PROGRESS, RESULTS, SPEC, Spec
from envace.errors import EnvaceError
from envace.files import read_json, write_json, write_text
from harnesses.bfcl.pins import check, package
from harnesses.own_process import in_own_process

_WITHOUT_ENDPOINT_THREADS = 1


def main(folders: list[Path]) -> int:
    """Run them one after another. Returns the worst exit code. Raises BenchmarkError where the harness is not the one
    that its version names.
    """
    versions = {Spec.model_validate(read_json(folder / SPEC)).harness.version for folder in folders}
    (digests,) = (check(version, package()) for version in versions)
    with tempfile.TemporaryDirectory(prefix="envace-bfcl-") as home:
        os.environ["BFCL_PROJECT_ROOT"] = home  # read when the harness is imported, which makes folders there
        print(f"{PROGRESS}0 0 loading the harness", flush=True)
        from bfcl_eval import _llm_response_generation  # noqa: F401
        from bfcl_eval.eval_checker import eval_runner  # noqa: F401

        return max(in_own_process("bfcl", folder, partial(run, folder, Path(home), digests)) for folder in folders)


def run(folder: Path, home: Path, digests: dict[str, str]) -> int:
    """One run: generate what is missing, score all of it, write rows and report."""
    from harnesses.bfcl.generation import drop_not_run, generate, keep_finished
    from harnesses.bfcl.handler import Conduct, EnvaceHandler, call_rules, infer_in_child, register
    from harnesses.bfcl.reporting import report, rows
    from harnesses.bfcl.sandbox import Zygote, network_can_be_dropped
    from harnesses.bfcl.scoring import evaluate_in_child, score
    from harnesses.bfcl.tasks import entries_to_generate, plan

    spec = Spec.model_validate(read_json(folder / SPEC))
    chosen = plan(spec, folder)
    results = folder / "harness" / "result"
    results.mkdir(parents=True, exist_ok=True)
    finished = keep_finished(results)
    wanted = sum(map(len, entries_to_generate(chosen).values()))
    done = iter(range(finished + 1, sys.maxsize))
    register()
    conduct = Conduct(
        spec.limits, call_rules(), lambda task: print(f"{PROGRESS}{next(done)} {wanted} {task}", flush=True)
    )
    EnvaceHandler.conduct = conduct
    refused = network_can_be_dropped()
    threads = spec.policy.concurrency if spec.policy else _WITHOUT_ENDPOINT_THREADS

    def work(task, channel):  # type: ignore[no-untyped-def]
        return infer_in_child(task["infer"], channel) if "infer" in task else evaluate_in_child(task["evaluate"])

    zygotes = [Zygote(work, without_network=refused is None) for _ in range(threads + 1)]
    scorer = zygotes.pop()
    for zygote in zygotes:
        conduct.zygotes.put(zygote)
    with contextlib.closing(scorer), _agent(spec, chosen.categories) as agent:
        conduct.agent = agent
        generate(chosen, results, home / "ids.json", threads)
        aborted = None
        if conduct.bound.passed:
            aborted = f"stopped after {conduct.bound.count} infrastructure failures, the last: {conduct.bound.last}"
            drop_not_run(results)
        scores = score(results, folder / "harness" / "evaluation", scorer, spec.limits.memory_mb)
    for zygote in zygotes:
        zygote.close()
    lines = [row.model_dump_json() for row in rows(chosen, results, scores, spec.run)]
    write_text(folder / RESULTS, "".join(f"{line}\n" for line in lines))
    sandbox = {
        "network": "dropped" if refused is None else refused,
        "memory_mb": spec.limits.memory_mb,
        "step_s": spec.limits.step_s,
    }
    found = report(chosen, scores, sandbox, aborted, digests)
    write_json(folder / DRIVER_REPORT, found.model_dump(mode="json"))
    return ABORTED if aborted else 0


@contextlib.contextmanager
def _agent(spec: Spec, categories: list[str]):  # type: ignore[no-untyped-def]
    from harnesses.bfcl.agents import EndpointAgent, IdleAgent
    from harnesses.bfcl.gold import GoldAgent

    if spec.agent.kind == "oracle":
        yield GoldAgent(categories)
    elif spec.agent.kind == "do-nothing":
        yield IdleAgent()
    else:
        assert spec.policy is not None  # the spec is refused without
        agent = EndpointAgent(spec.policy, spec.seed + spec.run)
        agent.start()
        try:
            yield agent
        finally:
            agent.close()


if __name__ == "__main__":
    try:
        sys.exit(main([Path(each).absolute() for each in sys.argv[1:]]))
    except EnvaceError as problem:
        print(f"bfcl: {problem}", flush=True)
        sys.exit(1)
