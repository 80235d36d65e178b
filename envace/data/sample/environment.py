"""The sample's world as a true environment for rollouts."""

from __future__ import annotations

from typing import Any

from envace.data.sample.world import World, build_world


class SampleEnvironment:
    """Answers calls by executing them in the world of a seed (an `engines.protocol.Environment`)."""

    def __init__(self, seed: int) -> None:
        self._world: World = build_world(seed)

    def respond(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The world's answer."""
        return self._world.execute(tool_name, arguments)
