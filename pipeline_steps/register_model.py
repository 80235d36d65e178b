"""Registers the trained policy in MLflow with everything that was measured on it, and applies the promotion gate."""

from __future__ import annotations

from pathlib import Path

from envace.config import Params
from envace.files import write_json
from envace.stage import stage_main
from envace.tracking import presence
from envace.tracking.evidence import read_evidence
from envace.tracking.register import DECISION, decision_of, register

IDS = Path(".envace/registration.json")


def run(params: Params) -> None:
    """models/policy and its reports -> a model version in MLflow; the decision by the floors, and the ids apart."""
    evidence = read_evidence(params)
    # first, as it is kept with the version; and a later failure must not come after an alias has moved
    write_json(DECISION, decision_of(params, evidence))
    done = register(params, evidence=evidence)
    # ids and aliases depend on what the registry held before: no later stage may read them
    ids = {
        "model_name": done.model_name,
        "version": done.version,
        "run_id": done.run_id,
        "aliases": done.aliases,
        "refusal": done.refusal,
    }
    write_json(IDS, ids)
    print(f"{done.model_name} version {done.version}: {', '.join(done.aliases)}")
    if done.refusal:
        print(f"not made champion: {done.refusal}")


def is_registered(params: Params, root: Path = Path()) -> bool:
    """Whether the registry still has the policy (it may have been wiped, which DVC cannot see)."""
    return presence.is_registered(params, root)


if __name__ == "__main__":
    stage_main("register_model", run)
