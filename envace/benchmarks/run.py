"""One run of a benchmark: pre-flight, the driver in the harness's venv, and from its rows metrics and provenance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from envace.benchmarks.harness import Benchmark
from envace.benchmarks.identity import digest, require_same
from envace.benchmarks.install import installed_python
from envace.benchmarks.metrics import metrics
from envace.benchmarks.preflight import preflight
from envace.benchmarks.process import driver_environment, last_lines, run_driver
from envace.benchmarks.protocol import (
    ABORTED,
    DRIVER_REPORT,
    LOG,
    METRICS,
    PROVENANCE,
    RESULTS,
    SPEC,
    DriverReport,
    Metrics,
    Provenance,
    Row,
    Spec,
)
from envace.benchmarks.shared_format import RESULTS_FILE, shared_results
from envace.errors import BenchmarkError
from envace.files import read_json, write_json
from envace.locks import held
from envace.progress import progress
from envace.tracking.code_state import git_commit, uncommitted_code

RUNS = Path("results/benchmarks")
Say = Callable[[str], None]


def run_benchmark(
    benchmark: Benchmark,
    spec: Spec,
    folder: Path,
    say: Say,
    *,
    root: Path = Path(),
    policy_name: str | None = None,
    check_endpoints: bool = True,
) -> Metrics:
    """Run what `spec` says in `folder`, going on with what is there, and write metrics.json and provenance.json.

    A finished run is left as it is, but for tasks that the infrastructure failed: they are tried again.

    Raises BenchmarkError where the harness is not installed, the folder holds another run, an endpoint does not answer,
    or the driver breaks. A run that was stopped by infrastructure failures has metrics too, which say so in `aborted`.
    """
    python = installed_python(benchmark, root)
    folder.mkdir(parents=True, exist_ok=True)
    with held("run", what=f"the run in {folder}", folder=folder):
        require_same(spec, folder)
        if (folder / METRICS).is_file():
            done = Metrics.model_validate(read_json(folder / METRICS))
            failed = sum(count.infra_failure for count in done.counts.values())
            if done.aborted is None and not failed:
                say(f"{folder} is complete already")
                return done
            if done.aborted is None:
                say(f"{folder} is complete but for {failed} infrastructure failures, which are tried again")
        checked = _preflight(spec, say) if check_endpoints else None
        write_json(folder / SPEC, spec.model_dump(mode="json"))
        (folder / DRIVER_REPORT).unlink(missing_ok=True)  # that of an earlier start
        keys = [e.api_key_env for e in (spec.policy, spec.user, spec.judge) if e is not None and e.api_key_env]
        environment = driver_environment(root, [*keys, *benchmark.passes], benchmark.environment)
        command = [str(python), str((root / benchmark.folder / benchmark.driver).absolute()), str(folder.absolute())]
        with progress(benchmark.title, "tasks") as shown:
            code = run_driver(command, folder, environment, shown, folder / LOG)
        if code not in (0, ABORTED):
            raise BenchmarkError(
                f"the driver of {benchmark.title} ended with {code}; its log is {folder / LOG}:\n"
                f"{last_lines(folder / LOG)}"
            )
        return _conclude(benchmark, spec, folder, root, checked, policy_name)


def read_rows(folder: Path) -> list[Row]:
    """The rows of a run; of several for one task and run the last. Raises BenchmarkError where a line is no row."""
    found: dict[tuple[int, str], Row] = {}
    path = folder / RESULTS
    if not path.is_file():
        raise BenchmarkError(f"{path} is not there; was the run stopped?")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = Row.model_validate_json(line)
        except ValidationError as error:
            raise BenchmarkError(f"{path}:{number}: no row of the protocol: {error.errors()[0]['msg']}") from None
        found[row.run, row.task_id] = row
    return list(found.values())


def _preflight(spec: Spec, say: Say) -> dict[str, Any]:
    checked = {}
    for role, endpoint in (("policy", spec.policy), ("user", spec.user), ("judge", spec.judge)):
        if endpoint is not None:
            checked[role] = preflight(role, endpoint)
            if role == "policy" and not checked[role]["called"]:
                say("pre-flight: the policy answers, but in words where a tool call was asked for")
    return checked


def _conclude(
    benchmark: Benchmark,
    spec: Spec,
    folder: Path,
    root: Path,
    checked: dict[str, Any] | None,
    policy_name: str | None,
) -> Metrics:
    try:
        report = DriverReport.model_validate(read_json(folder / DRIVER_REPORT))
    except (OSError, ValueError) as error:
        raise BenchmarkError(f"{folder / DRIVER_REPORT}: the driver left no readable report ({error})") from None
    rows: Sequence[Row] = read_rows(folder)
    found = metrics(benchmark, spec, rows, report)
    changed = uncommitted_code(root)
    record = Provenance(
        spec=spec,
        driver=report,
        digest=digest(spec, report),
        code={"commit": git_commit(root) or "none", "uncommitted": str(len(changed))},
        preflight=checked,
        subset=found.subset,
        policy_name=policy_name,
        model_version=spec.model_version,
    )
    write_json(folder / PROVENANCE, record.model_dump(mode="json"))
    write_json(folder / RESULTS_FILE, shared_results(benchmark, record, rows))
    write_json(folder / METRICS, found.model_dump(mode="json"))
    return found
