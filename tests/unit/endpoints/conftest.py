"""Parameters that make clients impatient, and quick back-off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from envace.config import EndpointParams


@pytest.fixture
def endpoint() -> Callable[..., EndpointParams]:
    """Makes parameters for a port on loopback; keywords replace the impatient defaults."""

    def make(port: int, **more: Any) -> EndpointParams:
        patience: dict[str, Any] = {"timeout_s": 0.3, "retries": 2, "deadline_s": 5, "concurrency": 4}
        breaker = {"breaker_failures": 50, "breaker_pause_s": 0.3}
        address = {"base_url": f"http://127.0.0.1:{port}/v1", "allowed_hosts": ["127.0.0.1"], "api_key_env": None}
        return EndpointParams.model_validate(address | {"model": "judge"} | patience | breaker | more)

    return make


@pytest.fixture(autouse=True)
def quick_backoff(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Back-off in hundredths of a second."""
    from envace.endpoints import client

    monkeypatch.setattr(client, "_FIRST_BACKOFF_S", 0.02)
    yield
