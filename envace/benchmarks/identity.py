"""Which run it is: the name of its folder, the digest of how it was run, and that a folder holds no other one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from envace.benchmarks.protocol import PROVENANCE, REFERENCE_AGENTS, SPEC, DriverReport, Spec
from envace.errors import BenchmarkError
from envace.files import canonical_json, read_json, sha256_text

_SAFE = re.compile(r"[^A-Za-z0-9._-]")


def run_id(spec: Spec, label: str) -> str:
    """A folder name: the same for the same spec, so that the same command goes on with a run that was stopped.

    Where the models are served does not matter: the same policy may stand at another port when the run goes on.
    """
    weights = (spec.checkpoint_sha256 or "")[:8]
    who = label if weights in label else f"{label}-{weights}"
    return f"{_SAFE.sub('_', who)}-{_identity(spec)[:10]}-run{spec.run}"


def digest(spec: Spec, report: DriverReport) -> str:
    """Hex SHA-256 of what decides the figures besides the policy: harness, data, tasks, agent, sampling, models."""
    harness = spec.harness.model_dump(mode="json", exclude={"checkout"})
    return sha256_text(
        canonical_json(
            {
                "benchmark": spec.benchmark,
                "harness": harness,
                "data": report.data_sha256,
                "tasks": {"categories": spec.categories, "ids": spec.ids, "trials": spec.trials},
                "agent": _agent(spec.agent.model_dump(mode="json", exclude={"rehearsal"})),
                "sampling": spec.policy.sampling.model_dump(mode="json") if spec.policy else None,
                "models": report.models,
                "limits": spec.limits.model_dump(mode="json", exclude={"infra_failures"}),
                "options": spec.options,
            }
        )
    )


def require_same(spec: Spec, folder: Path) -> None:
    """Rows of another policy, or of another way to run it, are never taken for this one's."""
    if not (folder / SPEC).is_file():
        return
    try:
        there = Spec.model_validate(read_json(folder / SPEC))
        record = read_json(folder / PROVENANCE) if (folder / PROVENANCE).is_file() else {}
    except (OSError, ValueError) as error:
        raise BenchmarkError(f"{folder}: its {SPEC} cannot be read ({error}); remove the folder") from None
    version = record.get("model_version", there.model_version)
    other = version != spec.model_version and spec.agent.kind not in REFERENCE_AGENTS
    if other or _identity(there) != _identity(spec):
        raise BenchmarkError(
            f"{folder} holds a run of {_policy(there, version)}, and this is one of {_policy(spec, spec.model_version)}"
            "; or their settings differ. Nothing was run: remove the folder, or use another"
        )


def _policy(spec: Spec, version: str | None) -> str:
    weights = f"checkpoint {spec.checkpoint_sha256[:8]}" if spec.checkpoint_sha256 else None
    return ", ".join(part for part in (version, weights) if part) or spec.agent.kind


def _identity(spec: Spec) -> str:
    """Hex SHA-256 of what is run on which policy: runs that differ in it have nothing to do with each other."""
    where = {"base_url", "allowed_hosts", "api_key_env", "concurrency"}
    left_out = {"policy": where, "user": where, "judge": where, "agent": {"rehearsal"}}
    return sha256_text(canonical_json(_without_none(spec.model_dump(mode="json", exclude=left_out))))


def _without_none(told: dict[str, Any]) -> dict[str, Any]:
    """Without what a run from before these fields did not have either, so that it keeps its name and its digest."""
    known = {k: v for k, v in told.items() if v is not None or k not in ("checkpoint_sha256", "model_version")}
    return known | {"agent": _agent(told["agent"])}


def _agent(told: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in told.items() if v is not None or k != "model"}
