"""Seeds that depend on what is generated, not on when: a rollout is the same whatever runs beside it."""

from __future__ import annotations

import hashlib


def derive_seed(*parts: object) -> int:
    """A 63-bit seed from labels, for instance (run seed, step, task, rollout, output)."""
    digest = hashlib.sha256("\x1f".join(str(p) for p in parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
