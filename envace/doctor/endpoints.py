"""What params.yaml points at: keys in environment variables, and model servers."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from envace.config import Params
from envace.doctor.finding import Finding, ok, problem, warning
from envace.endpoints.address import checked_base_url
from envace.errors import ConfigError

_TIMEOUT_S = 5.0


def endpoints(params: Params) -> Iterator[Finding]:
    """A line for each variable and each server that is named. No key is shown, and none is sent."""
    in_use = {
        "reward.judge.endpoint": params.reward.judge.kind != "rule",
        "train_policy.simulator.endpoint": params.train_policy.method == "grpo",
    }
    named = False
    for path, section in _sections(params.model_dump()):
        for key, value in section.items():
            if key.endswith("_env") and value:
                named = True
                yield key_finding(f"{path}.{key}", value, in_use.get(path, True))
        if section.get("base_url"):
            named = True
            yield server_finding(path, section["base_url"], section["allowed_hosts"], in_use.get(path, True))
    if not named:
        yield ok("endpoints", "none is configured: rewards and answers come from code and from the policy")


def key_finding(where: str, variable: str, in_use: bool = True) -> Finding:
    """Whether the variable is set."""
    if os.environ.get(variable):
        return ok(where, f"${variable} is set")
    tell = problem if in_use else warning
    return tell(where, f"${variable} is not set", f"export {variable}=... before the run, or set {where} to null")


def server_finding(where: str, base_url: str, allowed_hosts: list[str], in_use: bool) -> Finding:
    """Whether something listens at an address that may be asked. Only a connection is opened, nothing is sent."""
    try:
        parts = urlsplit(checked_base_url(base_url, allowed_hosts))
    except ConfigError as error:
        return problem(where, str(error), "correct base_url or allowed_hosts")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), timeout=_TIMEOUT_S).close()
    except OSError as error:
        tell = problem if in_use else warning
        return tell(where, f"{base_url} does not answer ({error})", "start the server, or correct base_url")
    return ok(where, f"{base_url} takes connections")


def _sections(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield ".".join(path), value
        for key, inner in value.items():
            yield from _sections(inner, (*path, key))
