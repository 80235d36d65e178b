"""The stand-in for the simulator LLM: the one that experiments use."""

from __future__ import annotations

from envace.experiment.simulator import WorldServer, world_simulator

__all__ = ["WorldServer", "world_simulator"]
