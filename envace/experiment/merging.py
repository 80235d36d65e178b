"""The parameters of one arm and seed: params.yaml with the plan's changes by dotted key, checked as a whole."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from envace.config import Params, parse_params
from envace.errors import ConfigError
from envace.experiment.plan import Arm, Plan

SIMULATOR_AT = "http://127.0.0.1:1/v1"
"""Stands for the address of the experiment's own simulator, which is known only once it listens."""
SIMULATOR_MODEL = "world"
_ADDRESS = "train_policy.simulator.endpoint"


def with_changes(raw: Mapping[str, Any], changes: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A copy of decoded params with values set by dotted key. Raises ConfigError for keys that are not there."""
    made = copy.deepcopy(dict(raw))
    for key, value in changes.items():
        *sections, last = key.split(".")
        place: Any = made
        for section in sections:
            place = place.get(section) if isinstance(place, dict) else None
        if not isinstance(place, dict) or last not in place:
            raise ConfigError(f"{where}: {key}: no such key in params.yaml")
        if isinstance(place[last], dict) and isinstance(value, dict):
            raise ConfigError(f"{where}: {key}: is a section; name the keys inside it, with dots")
        place[last] = value
    return made


def arm_params(
    raw: Mapping[str, Any], plan: Plan, name: str, seed: int, more: Mapping[str, Any] | None = None
) -> Params:
    """The parameters of an arm and a seed. Raises ConfigError where they are wrong."""
    arm, where = plan.arms[name], f"arm {name}"
    changes = {**plan.common, **arm.params, **dict.fromkeys(plan.seeded, seed), **(more or {})}
    changes["evaluate_policy.repeats"] = plan.evaluation.samples
    if arm.simulator:
        changes |= {f"{_ADDRESS}.base_url": SIMULATOR_AT, f"{_ADDRESS}.model": SIMULATOR_MODEL}
    params = parse_params(with_changes(raw, changes, where), where)
    _check_simulator(arm, params, where)
    return params


def with_simulator(params: Params, base_url: str) -> Params:
    """The same parameters with the address where the simulator listens."""
    return parse_params(with_changes(params.model_dump(mode="json"), {f"{_ADDRESS}.base_url": base_url}, ""), "")


def _check_simulator(arm: Arm, params: Params, where: str) -> None:
    if arm.simulator and params.train_policy.method != "grpo":
        raise ConfigError(f"{where}: a simulator answers in method grpo only, not in {params.train_policy.method}")
    if arm.simulator and params.fetch_data.source != "sample":
        raise ConfigError(f"{where}: simulator 'world' executes the sample's tools; the data is not the sample")
