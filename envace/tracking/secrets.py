"""Keeps secrets out of the store: the values of the environment variables that params.yaml names by `*_env`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from envace.tracking.names import leaves

HIDDEN = "[secret]"
_SHORTEST = 4  # a shorter value is no secret, and would be found in every other word


class Scrub:
    """Called with a text, or with nested lists and mappings of texts: gives the same without the secrets."""

    def __init__(self, secrets: list[str]) -> None:
        self._secrets = sorted({s for s in secrets if len(s) >= _SHORTEST}, key=len, reverse=True)

    def __call__(self, value: Any) -> Any:
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, HIDDEN)
            return value
        if isinstance(value, Mapping):
            return {key: self(inner) for key, inner in value.items()}
        return [self(inner) for inner in value] if isinstance(value, list) else value


def scrub_of(params: Mapping[str, Any]) -> Scrub:
    """For decoded parameters: hides what the variables hold at this moment that keys ending in `_env` name."""
    named = [value for path, value in leaves(params) if path[-1].endswith("_env") and isinstance(value, str)]
    return Scrub([os.environ[name] for name in named if name in os.environ])
