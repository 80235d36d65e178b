"""Profiles: whole params files for other models and machines, and the few values in them that only you can fill in.

Such a value is the text `<fill in: what belongs here>`. A file that still holds one is refused, with a line for each.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envace.errors import ConfigError

FOLDER = Path(__file__).resolve().parents[1] / "profiles"
SHIPPED = "tiny-cpu"
"""The profile that params.yaml holds."""

_OPEN, _CLOSE = "<fill in: ", ">"


def profile_names(folder: Path = FOLDER) -> list[str]:
    """Every profile that `profile_path` knows."""
    return sorted({SHIPPED, *(path.stem for path in folder.glob("*.yaml"))})


def profile_path(name: str, folder: Path = FOLDER) -> Path:
    """The file of a profile. Raises ConfigError, with all names, for an unknown one."""
    if name not in profile_names(folder):
        raise ConfigError(f"profile {name!r} is unknown; there are: {', '.join(profile_names(folder))}")
    return folder.parent / "params.yaml" if name == SHIPPED else folder / f"{name}.yaml"


def unfilled(raw: Any, prefix: str = "") -> dict[str, str]:
    """Keys of a decoded params file that are to be filled in, like "fetch_data.hub.revision", and what belongs in."""
    if isinstance(raw, dict):
        return {k: w for name, value in raw.items() for k, w in unfilled(value, f"{prefix}.{name}").items()}
    if isinstance(raw, list):
        return {k: w for i, value in enumerate(raw) for k, w in unfilled(value, f"{prefix}.{i}").items()}
    if isinstance(raw, str) and raw.startswith(_OPEN) and raw.endswith(_CLOSE):
        return {prefix.removeprefix("."): raw[len(_OPEN) : -len(_CLOSE)]}
    return {}


def fill_in(raw: Any, values: Mapping[str, Any]) -> Any:
    """A copy with `values` put in by their keys, like {"fetch_data.hub.revision": "..."}, open ones or not.

    Raises ConfigError for a key that the file does not have.
    """
    filled = copy.deepcopy(raw)
    for key, value in values.items():
        *path, last = key.split(".")
        place = filled
        for name in path:
            place = place.get(name) if isinstance(place, dict) else None
        if not isinstance(place, dict) or last not in place:
            raise ConfigError(f"{key}: the profile has no such key")
        place[last] = value
    return filled


def merged(base: Any, profile: Any) -> Any:
    """`base` with everything that `profile` says put over it, key by key; lists are replaced whole."""
    if not isinstance(base, dict) or not isinstance(profile, dict):
        return copy.deepcopy(profile)
    both = {key: merged(base[key], profile[key]) if key in base else copy.deepcopy(profile[key]) for key in profile}
    return {**copy.deepcopy(base), **both}
