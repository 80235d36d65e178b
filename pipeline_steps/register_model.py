"""Registers the trained policy in MLflow with everything that was measured on it, and applies the promotion gate."""

from __future__ import annotations

from pathlib import Path

from envace.config import Params
from envace.files import write_json
from envace.stage import stage_main
from envace.tracking import presence
from envace.tracking.register import register

DECISION = Path("reports/registration/registration.json")
IDS = Path(".envace/registration.json")


def run(params: Params) -> None:
    """models/policy and its reports -> a model version in MLflow; the decision by the floors, and the ids apart."""
    done = register(params)
    decision = {
        "model_name": done.model_name,
        "model_sha256": done.model_sha256,
        "data_sha256": done.data_sha256,
        "floors": [
            {"figure": f.figure, "required": f.required, "gained": f.gained, "holds": f.holds} for f in done.floors
        ],
        "floors_hold": all(f.holds for f in done.floors),
    }
    # ids and aliases depend on what the registry held before: no later stage may read them
    ids = {
        "model_name": done.model_name,
        "version": done.version,
        "run_id": done.run_id,
        "aliases": done.aliases,
        "refusal": done.refusal,
    }
    write_json(IDS, ids)
    write_json(DECISION, decision)
    print(f"{done.model_name} version {done.version}: {', '.join(done.aliases)}")
    if done.refusal:
        print(f"not made champion: {done.refusal}")


def is_registered(params: Params) -> bool:
    """Whether the registry still has the policy (it may have been wiped, which DVC cannot see)."""
    return presence.is_registered(params)


if __name__ == "__main__":
    stage_main("register_model", run)
