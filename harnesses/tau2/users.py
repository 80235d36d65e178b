"""Who plays the customer: the harness's simulator on a model, or, offline, a script."""

from __future__ import annotations

import json
from typing import Any

from tau2.data_model.message import AssistantMessage, MultiToolMessage, ToolCall, UserMessage
from tau2.user.user_simulator import STOP, UserSimulator

from harnesses.tau2.agents import FAREWELL, ON_YOUR_DEVICE
from harnesses.tau2.failures import while_user_speaks
from harnesses.tau2.turns import Clock

_AGREED = "Yes, please go ahead."
_DONE = "Done. What is next?"


class ModelUser(UserSimulator):
    """The official simulator. Its failures are never put down to the policy."""

    clock: Clock

    def generate_next_message(self, message: Any, state: Any) -> Any:
        """Ask the model that plays the customer once."""
        with self.clock.stopped():
            try:
                said, state = super().generate_next_message(message, state)
                said.validate()
            except Exception as error:
                raise while_user_speaks(error) from error
        if self.is_stop(said):
            self.clock.scoring()
        return said, state


class ScriptedUser(UserSimulator):
    """Needs no model: hands over the whole scenario, agrees to everything, carries out what it is asked to call.

    It leaves after a farewell, or after `turns` messages. No substitute for the simulator: a policy's score with it is
    comparable to no published one.
    """

    clock: Clock
    turns: int
    _heard = 0

    def set_seed(self, seed: int) -> None:
        """Nothing here is random."""

    def generate_next_message(self, message: Any, state: Any) -> Any:
        """The next message by the script."""
        with self.clock.stopped():
            state.messages.extend(message.tool_messages if isinstance(message, MultiToolMessage) else [message])
            said = self._answer(message)
            state.messages.append(said)
        if self.is_stop(said):
            self.clock.scoring()
        return said, state

    def _answer(self, message: Any) -> UserMessage:
        if not isinstance(message, AssistantMessage):
            return _says(_DONE)
        text = message.content or ""
        call = self._asked_for(text)
        if call is not None:
            return UserMessage(role="user", content=None, tool_calls=[call], cost=0.0)
        if FAREWELL in text:
            return _says(STOP)
        self._heard += 1
        if self._heard == 1:
            return _says(str(self.instructions))
        return _says(STOP if self._heard > self.turns else _AGREED)

    def _asked_for(self, text: str) -> ToolCall | None:
        if not text.startswith(ON_YOUR_DEVICE):
            return None
        try:
            asked = json.loads(text.removeprefix(ON_YOUR_DEVICE))
            return ToolCall(id="on-device", requestor="user", **asked)
        except (ValueError, TypeError):
            return None


def _says(text: str) -> UserMessage:
    return UserMessage(role="user", content=text, cost=0.0)
