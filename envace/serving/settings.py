"""What `envace serve` was asked for, and how much one client may ask of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MAX_BODY_BYTES = 4 << 20
BODY_TIMEOUT_S = 30.0
QUEUE_FACTOR = 8
"""Requests admitted for each one that is answered at a time; those beyond are told to come back."""


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """`max_length`: longest prompt plus answer in tokens; None leaves it to the backend."""

    model: Path
    name: str
    host: str = "127.0.0.1"
    port: int = 8000
    max_concurrency: int = 16
    max_length: int | None = None
