"""All seeded faults. For every check of the contract, and every severity it may have, there is at least one."""

from __future__ import annotations

from tests.unit.data.seeded_message_faults import MESSAGE_FAULTS
from tests.unit.data.seeded_run_faults import RUN_FAULTS, STOPS
from tests.unit.data.seeded_tool_faults import TOOL_FAULTS

ROW_FAULTS = (*MESSAGE_FAULTS, *TOOL_FAULTS)
ALL_FAULTS = (*ROW_FAULTS, *RUN_FAULTS, *STOPS)
