"""What a run's results come from, by hash: the rows of the page's section on lineage."""

from __future__ import annotations

from dataclasses import dataclass

from envace.report.inputs import Inputs


@dataclass(frozen=True, slots=True)
class Origin:
    """One thing that the results come from; `sha256` is None where there is a statement and no hash."""

    what: str
    stated: str
    sha256: str | None


def lineage(inputs: Inputs) -> list[Origin]:
    """Only what follows from the inputs of the report. Versions, run ids, the commit and all parameters belong to one
    registration and not to the results: `envace lineage` has them."""
    source = inputs.validation.get("source") or {}
    stated = ", ".join(str(source[key]) for key in ("origin", "licence") if source.get(key))
    gate = inputs.registration
    found = [Origin("raw data", stated or "not stated", None)]
    found.append(Origin("prepared data", "data/prepared/manifest.json", gate.get("data_sha256")))
    tables = inputs.manifest.get("sha256") or {}
    found += [Origin("prepared table", f"data/prepared/{name}", sha256) for name, sha256 in sorted(tables.items())]
    found.append(Origin("policy", f"models/policy, registered as {gate.get('model_name')}", gate.get("model_sha256")))
    digests = {r["benchmark"]: r["digest"] for r in inputs.results["results"] if r["digest"]}
    words = "tasks, sampling, limits and reward of the evaluation"
    return found + [Origin(f"benchmark {name}", words, digest) for name, digest in digests.items()]
