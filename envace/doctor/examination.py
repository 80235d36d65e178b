"""All checks in one go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from envace.config import load_params
from envace.doctor.endpoints import endpoints
from envace.doctor.finding import Finding, ok, problem
from envace.doctor.machine import machine
from envace.doctor.project import cache_finding, git_finding, locks, store_finding
from envace.doctor.services import services
from envace.doctor.software import software
from envace.errors import ConfigError


def examine(root: Path = Path()) -> Iterator[Finding]:
    """Findings as they come. Looks only: nothing is changed, and only this machine's own ports and the servers of
    params.yaml are asked.
    """
    yield from machine(root)
    yield from software(root)
    try:
        params = load_params(root / "params.yaml")
    except ConfigError as error:
        yield problem("params", str(error), "correct params.yaml")
    else:
        yield ok("params", f"profile {params.profile}, every key is known and in its bounds")
        yield from endpoints(params)
    yield from services()
    yield git_finding(root)
    yield cache_finding(root)
    yield store_finding(root)
    yield from locks(root)
