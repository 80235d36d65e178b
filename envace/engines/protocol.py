"""What the act–rehearse loop asks of an engine, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from envace.types import Role


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One generation. `session` names the rollout (engines may keep its prefix); `seed` fixes the sampled draws.

    `deadline_s`: seconds the answer may take, waiting for a slot included; None leaves that to the caller. `role` is
    for engines that hold a policy for each role.
    """

    session: str
    prompt_ids: list[int]
    max_tokens: int
    temperature: float
    top_p: float
    seed: int
    deadline_s: float | None = None
    role: Role = Role.ACT


@dataclass(slots=True)
class Generation:
    """What was sampled: ids, the end token included where it came, and one log-probability an id."""

    token_ids: list[int]
    log_probs: list[float]
    fields: dict[str, Any] = field(default_factory=dict)


class TokenEngine(Protocol):
    """An engine that takes and gives token ids. Raises EngineError when it cannot serve."""

    async def generate(self, request: GenerationRequest) -> Generation:
        """Sample one output."""
        ...


class Environment(Protocol):
    """A true environment: something that really answers calls (evaluation only, never training)."""

    def respond(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The tool's answer."""
        ...
