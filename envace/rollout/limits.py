"""Where a rollout stops by rule: the reasons as an exception, and the two limits that count over its outputs."""

from __future__ import annotations

from envace.chat.parser import ActOutput
from envace.config import RolloutParams
from envace.types import StopReason


class Stop(Exception):
    """Ends the unfolding with a reason. Never leaves envace.rollout."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Limits:
    """Counts act outputs, and broken ones in a row."""

    def __init__(self, params: RolloutParams) -> None:
        self._params = params
        self._act_outputs = 0
        self._broken_in_a_row = 0

    def begin_act(self) -> None:
        """Call before each act output. Raises Stop(MAX_OUTPUTS) where the rollout has had all of its own."""
        if self._act_outputs >= self._params.max_outputs:
            raise Stop(StopReason.MAX_OUTPUTS)
        self._act_outputs += 1

    def fault_of(self, parsed: ActOutput) -> str | None:
        """Why none of an output's calls may be sent, or None. Raises Stop(INVALID_CALL) for one broken output too many
        in a row."""
        fault = str(parsed.error) if parsed.error else None
        if fault is None and len(parsed.calls) > self._params.max_parallel_calls:
            fault = f"at most {self._params.max_parallel_calls} calls at once"
        self._broken_in_a_row = self._broken_in_a_row + 1 if fault else 0
        if self._broken_in_a_row >= self._params.max_invalid_calls:
            raise Stop(StopReason.INVALID_CALL)
        return fault
