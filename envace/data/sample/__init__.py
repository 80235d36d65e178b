"""The bundled sample: an executable world, conversations over it, raw records and demonstrations, all from a seed."""

from envace.data.sample.catalogue import tool_spec
from envace.data.sample.conversations import Conversation, generate_conversations, partition_of
from envace.data.sample.demonstrations import (
    Demonstration,
    DemonstrationTurn,
    FaultRates,
    clean_demonstration,
    faulty_demonstration,
    generate_demonstrations,
)
from envace.data.sample.records import to_raw_record
from envace.data.sample.world import World, build_world

__all__ = [
    "Conversation",
    "Demonstration",
    "DemonstrationTurn",
    "FaultRates",
    "World",
    "build_world",
    "clean_demonstration",
    "faulty_demonstration",
    "generate_conversations",
    "generate_demonstrations",
    "partition_of",
    "to_raw_record",
    "tool_spec",
]
