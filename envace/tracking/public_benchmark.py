"""Figures of public benchmarks in the store: a run of their own, tied to the registered version that was measured.

The version gets a tag `benchmark_NAME_DIGEST_runN` (the first 16 digits of the digest), whose value is JSON: the strict
percent by category and column. `benchmark_scores` reads them back as the gate compares them: by digest.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from envace.benchmarks.protocol import METRICS, PROVENANCE, RESULTS, SPEC, Metrics, Provenance
from envace.errors import TrackingError
from envace.files import compact_json, read_json
from envace.tracking.promotion import find_version, registry_lock
from envace.tracking.run_content import log_figures, log_parameters
from envace.tracking.runs import tracked_run
from envace.tracking.store import experiment_id, open_store

EXPERIMENT = "benchmarks"
_TAG, _DIGITS = "benchmark", 16


def record_benchmark(folder: Path, model: tuple[str, str] | None, root: Path = Path()) -> str:
    """Log the finished run in `folder`; with `model` (name, version or alias) tied to it. Returns the run's id.

    Raises TrackingError where the version is not registered, or the run was made on another one.
    """
    found = Metrics.model_validate(read_json(folder / METRICS))
    record = Provenance.model_validate(read_json(folder / PROVENANCE))
    client = open_store(root)
    tags = {
        "benchmark": found.benchmark,
        "benchmark_sha256": record.digest,
        "agent": found.agent,
        "subset": str(found.subset),
        "aborted": found.aborted or "no",
    }
    version = find_version(client, *model) if model else None
    if version is not None:
        measured, named = record.model_version, f"{version.name}/{version.version}"
        if measured != named:
            raise TrackingError(f"{folder} is a run of {measured or 'no registered version'}, not of {named}")
        tags |= {"model_name": version.name, "model_version": str(version.version)}
    experiment = experiment_id(client, EXPERIMENT, root)
    with tracked_run(client, experiment, f"{found.benchmark} {folder.name}", tags) as run_id:
        log_parameters(client, run_id, {"spec": record.spec.model_dump(mode="json")})
        figures = {"official": _known(found.official), "strict": _known(found.strict)}
        counts = {name: count.model_dump() for name, count in found.counts.items()}
        dataset = (found.benchmark, record.digest[:36])
        model_id = version.model_id if version is not None else None
        all_figures = {**figures, "tasks": counts}
        log_figures(client, run_id, all_figures, prefix=found.benchmark, model_id=model_id, dataset=dataset)
        for name in (SPEC, METRICS, PROVENANCE, RESULTS):
            client.log_artifact(run_id, str(folder / name), "benchmark")
    if version is not None and found.aborted is None:
        key = f"{_TAG}_{found.benchmark}_{record.digest[:_DIGITS]}_run{found.run}"
        with registry_lock(root):
            value = compact_json({**_known(found.strict), "mlflow_run": run_id})
            client.set_model_version_tag(version.name, version.version, key, value)
    return run_id


def benchmark_scores(tags: Mapping[str, str], benchmark: str, figure: str) -> dict[str, float]:
    """Strict percent of one category or column by digest, the mean over runs: what `gate.refusal` takes as measured.

    Empty where the version was never measured on it, or its run did not cover that figure.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for key, value in tags.items():
        name, _, digest = key.rpartition("_run")[0].rpartition("_")
        if name == f"{_TAG}_{benchmark}":
            score = json.loads(value).get(figure)
            if isinstance(score, int | float):
                found[digest].append(float(score))
    return {digest: fmean(scores) for digest, scores in found.items()}


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}
