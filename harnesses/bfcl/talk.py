"""One task's conversation as the driver sees it: what was asked and answered, what failed, and whether to go on."""

from __future__ import annotations

import threading
from typing import Any

from envace.benchmarks.protocol import Limits, Status
from envace.endpoints.overflow import outgrown
from envace.errors import EndpointError
from harnesses.bfcl.agents import Agent
from harnesses.bfcl.calls import CallRules, UnsafeCallError
from harnesses.bfcl.replies import Reply, failure_of, too_long, wants_data

_TEXT_KEPT = 4000
_MESSAGES_KEPT = 200


class StoppedError(RuntimeError):
    """The task cannot go on; the message is what the harness records in place of an answer."""


class Bound:
    """Counts infrastructure failures of a run, over all its threads."""

    def __init__(self, most: int) -> None:
        self._most, self._lock, self.count = most, threading.Lock(), 0
        self.last = ""

    def add(self, reason: str) -> None:
        """One more."""
        with self._lock:
            self.count += 1
            self.last = reason

    @property
    def passed(self) -> bool:
        """Whether nothing more is to be asked."""
        return self.count > self._most


class Talk:
    """Stands between the harness and the agent for one task. `status` and `reason` are the worst that happened."""

    def __init__(self, task: str, agent: Agent, bound: Bound, limits: Limits, rules: CallRules | None) -> None:
        self._agent, self._bound, self._limits, self._rules = agent, bound, limits, rules
        self.task, self.status, self.reason = task, "scored", None
        self.prompt_tokens = self.completion_tokens = 0
        self._messages: list[Any] = []
        self._said: list[Any] = []

    status: Status
    reason: str | None

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """The agent's reply as plain data. Raises StoppedError where there is none that the harness may see."""
        if self._bound.passed:
            self.fail("not_run", "not asked any more: too many infrastructure failures")
            raise StoppedError(self.reason)
        try:
            reply = self._agent.reply({**question, "id": self.task})
        except EndpointError as error:
            if outgrown(str(error)):
                self.fail("model_failure", f"the conversation outgrew the context: {error}")
                raise StoppedError(self.reason) from None
            self._bound.add(str(error))
            self.fail("infra_failure", str(error))
            raise StoppedError(str(error)) from None
        self._record(question["messages"], reply)
        if long := too_long(reply, self._limits.call_bytes):
            self.fail("model_failure", long)
            raise StoppedError(long)
        if wrong := failure_of(reply, free_form=wants_data(self.task)) or self._unsafe(reply):
            self.fail("model_failure", wrong)
        return reply.as_json()

    def fail(self, status: Status, reason: str) -> None:
        """Note a failure; the first one stands, but for one of the infrastructure, which no policy is to blame for."""
        if self.status == "scored" or (self.status == "model_failure" and status == "infra_failure"):
            self.status, self.reason = status, reason[:500]

    def note(self) -> dict[str, Any]:
        """What is kept with the harness's own result."""
        return {
            "status": self.status,
            "reason": self.reason,
            "tokens": {"prompt": self.prompt_tokens, "completion": self.completion_tokens},
            "trajectory": _shortened([*self._messages, *self._said][:_MESSAGES_KEPT]),
        }

    def _record(self, messages: list[Any], reply: Reply) -> None:
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens
        self._messages, self._said = list(messages), [reply.message]

    def _unsafe(self, reply: Reply) -> str | None:
        if self._rules is not None:  # a task whose calls are executed
            for call in reply.calls:
                try:
                    self._rules.source(call.name, call.arguments)
                except UnsafeCallError as error:
                    return f"refused call: {error}"
        return None


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _TEXT_KEPT else f"{value[:_TEXT_KEPT]} … ({len(value)} characters)"
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    return {key: _shortened(item) for key, item in value.items()} if isinstance(value, dict) else value
