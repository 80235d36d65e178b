"""Who acts for the company: the harness's own agent on the policy, the gold actions, or nobody.

Only the oracle sees the task. The others get the policy text, the tools and the messages.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tau2.agent.llm_agent import LLMAgent, LLMGTAgent
from tau2.data_model.message import AssistantMessage, ToolCall

from harnesses.tau2.failures import ModelFailure, while_policy_speaks
from harnesses.tau2.turns import Clock

IDLE_ANSWER = "I am sorry, I am not able to help with that."
ON_YOUR_DEVICE = "Please do this on your device: "
"""Begins a message of the oracle whose rest is a call, as JSON, of one of the user's tools."""
FAREWELL = "That is all, goodbye."


@dataclass(frozen=True)
class Rules:
    """What an agent keeps to besides the harness: the clock, and how long a call's arguments may be."""

    clock: Clock
    call_bytes: int


class PolicyAgent(LLMAgent):
    """The built-in agent. What breaks while the policy speaks is told apart from what breaks elsewhere."""

    rules: Rules

    def generate_next_message(self, message: Any, state: Any) -> Any:
        """Ask the policy once (the harness's own retries included)."""
        with self.rules.clock.stopped():
            try:
                reply, state = super().generate_next_message(message, state)
                reply.validate()
            except Exception as error:
                raise while_policy_speaks(error) from error
        for call in reply.tool_calls or ():
            length = len(json.dumps(call.arguments))
            if length > self.rules.call_bytes:
                raise ModelFailure(f"a call of {call.name[:100]} with {length} bytes of arguments; not executed")
        return reply, state


class IdleAgent(LLMAgent):
    """Does nothing: the floor."""

    rules: Rules

    def generate_next_message(self, message: Any, state: Any) -> Any:
        """Always the same words."""
        with self.rules.clock.stopped():
            return AssistantMessage(role="assistant", content=IDLE_ANSWER, cost=0.0), state

    def set_seed(self, seed: int) -> None:
        """Nothing here is random."""


class OracleAgent(LLMGTAgent):
    """Replays the gold actions: its own by calls, the user's by asking for them one by one: the ceiling."""

    rules: Rules
    _at = 0

    @classmethod
    def check_valid_task(cls, task: Any) -> bool:
        """All tasks, also those whose right answer is to do nothing."""
        return True

    def generate_next_message(self, message: Any, state: Any) -> Any:
        """The next gold action; after the last what the customer has to be told."""
        with self.rules.clock.stopped():
            return self._next(), state

    def set_seed(self, seed: int) -> None:
        """Nothing here is random."""

    def make_agent_instructions_from_actions(self) -> str:
        """No model reads them (and the harness cannot write them for a task without actions)."""
        return ""

    def _next(self) -> AssistantMessage:
        gold = self.task.evaluation_criteria.actions or []
        if self._at == len(gold):
            told = self.task.evaluation_criteria.communicate_info or []
            return AssistantMessage(role="assistant", content=" ; ".join([*told, FAREWELL]), cost=0.0)
        action = gold[self._at]
        self._at += 1
        if action.requestor == "assistant":
            call = ToolCall(id=f"gold-{self._at}", name=action.name, arguments=action.arguments, requestor="assistant")
            return AssistantMessage(role="assistant", content=None, tool_calls=[call], cost=0.0)
        asked = json.dumps({"name": action.name, "arguments": action.arguments})
        return AssistantMessage(role="assistant", content=ON_YOUR_DEVICE + asked, cost=0.0)
