"""A conversation on a chat endpoint: messages in, text and tool calls out. What test-time rehearsal uses.

The endpoint gives no token ids and no log-probabilities, so these rollouts are never trained on (envace.types.Output).
The rehearse role is always asked by instruction. There the calls stand as text in the assistant message, since the API
wants every call in its own shape to be answered before the next user message.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Protocol

from envace.chat.api_calls import api_call, calls_as_text, parse_chat
from envace.chat.layout import Item
from envace.chat.parser import ActOutput, answer_start
from envace.config import SamplingParams
from envace.endpoints.reply import ChatReply
from envace.rollout.asking import Ask, instruction
from envace.rollout.conversation import Acted, Rehearsed
from envace.rollout.limits import Stop
from envace.rollout.loop import OnEnd, unfold_in
from envace.rollout.seeds import derive_seed
from envace.rollout.settings import RolloutSettings
from envace.types import Output, Role, Rollout, StopReason, Task, ToolCall

Message = dict[str, Any]


class ChatEndpoint(Protocol):
    """What is asked of a client (envace.endpoints.client.ChatClient is one). Raises EngineError."""

    async def chat(
        self,
        messages: list[Message],
        *,
        tools: list[dict[str, Any]] | None = None,
        max_tokens: int,
        temperature: float,
        top_p: float = 1.0,
        seed: int | None = None,
    ) -> ChatReply:
        """One completion."""
        ...


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as it was sent, and the role that it was for."""

    role: Role
    messages: list[Message]
    tools: list[dict[str, Any]]
    max_tokens: int
    temperature: float
    top_p: float
    seed: int


@dataclass(slots=True)
class _Exchange:
    """One act output in three forms (as the act role sees it in its turn, later, and as the environment does), with
    what answered it."""

    whole: Message
    later: Message
    shown: Message
    call_ids: list[str]
    results: list[str] = field(default_factory=list)

    def answers(self) -> list[Message]:
        """The results in the API's shape. Those to no call (the output was broken) come from the user's side."""
        if self.call_ids:
            pairs = zip(self.call_ids, self.results, strict=False)
            return [{"role": "tool", "tool_call_id": call_id, "content": text} for call_id, text in pairs]
        return [{"role": "user", "content": _tagged(text)} for text in self.results]


class ChatConversation:
    """See envace.rollout.conversation. `sent` logs every request, in order."""

    def __init__(self, task: Task, index: int, client: ChatEndpoint, settings: RolloutSettings) -> None:
        self._task, self._index, self._client, self._settings = task, index, client, settings
        self._params = settings.rollout
        self._tools = [tool.openai() for tool in task.tools]
        opening = [] if task.system_prompt is None else [{"role": "system", "content": task.system_prompt}]
        self._history: list[Message | _Exchange] = [*opening]
        self._turn, self._turn_began, self._calls, self._used = -1, 0, 0, 0
        self.sent: list[Sent] = []

    def user(self, text: str) -> None:
        """Append the next user message."""
        self._turn, self._turn_began = self._turn + 1, len(self._history)
        self._history.append({"role": "user", "content": text})

    async def act(self, number: int) -> Acted:
        """Let the act role go on."""
        params = self._params
        reply = await self._ask(Role.ACT, self._messages(), params.max_act_tokens, params.act, number)
        self._used = reply.usage.get("prompt_tokens", 0) + reply.usage.get("completion_tokens", 0)
        parsed = parse_chat(reply.text, reply.reasoning, reply.tool_calls, self._task)
        output = self._output(Role.ACT, reply)
        if reply.finish_reason == "length":
            return Acted(output, None)
        self.acted(output.text, parsed)
        return Acted(output, parsed)

    def acted(self, text: str, parsed: ActOutput) -> None:
        """Append an act output that was made elsewhere."""
        self._history.append(self._exchange(text, parsed))

    async def rehearse(self, ask: Ask, number: int) -> Rehearsed:
        """Let the rehearse role answer a call."""
        params, latest = self._params, self._history[-1]
        assert isinstance(latest, _Exchange)
        earlier = [_tagged(text) for text in latest.results] if ask.sees_results else []
        told = "\n".join([*earlier, instruction(params, self._task, ask)])
        messages = [*self._messages(len(self._history) - 1), latest.shown, {"role": "user", "content": told}]
        reply = await self._ask(Role.REHEARSE, messages, params.max_rehearse_tokens, params.rehearse, number)
        answer = reply.text[answer_start(reply.text) :].strip()
        return Rehearsed(
            self._output(Role.REHEARSE, reply, ask.call), None if reply.finish_reason == "length" else answer, answer
        )

    def result(self, item: Item) -> None:
        """Append what answered the next call."""
        latest = self._history[-1]
        assert isinstance(latest, _Exchange) and isinstance(item, str)
        latest.results.append(item)

    async def _ask(
        self, role: Role, messages: list[Message], max_tokens: int, sampling: SamplingParams, number: int
    ) -> ChatReply:
        if self._used > self._params.max_prompt_tokens:  # what the endpoint counted for the latest act output
            raise Stop(StopReason.CONTEXT_OVERFLOW)
        seed = derive_seed(self._settings.seed, self._task.task_id, self._index, number)
        settings = {"max_tokens": max_tokens, "temperature": sampling.temperature, "top_p": sampling.top_p}
        self.sent.append(Sent(role, messages, self._tools, seed=seed, **settings))
        return await self._client.chat(messages, tools=self._tools or None, seed=seed, **settings)

    def _messages(self, count: int | None = None) -> list[Message]:
        made: list[Message] = []
        for position, entry in enumerate(self._history[:count]):
            if isinstance(entry, _Exchange):
                is_current = position >= self._turn_began or self._params.keep_reasoning == "all"
                made += [entry.whole if is_current else entry.later, *entry.answers()]
            else:
                made.append(entry)
        return made

    def _exchange(self, text: str, parsed: ActOutput) -> _Exchange:
        """The messages of an output. A broken one is text as it came, whatever calls it tried to make."""
        if parsed.error:
            said = {"role": "assistant", "content": text}
            return _Exchange(said, said, said, [])
        ids = [f"call_{self._calls + i}" for i in range(len(parsed.calls))]
        self._calls += len(ids)
        calls = [api_call(c, call_id) for c, call_id in zip(parsed.calls, ids, strict=True)]
        later: Message = {"role": "assistant", "content": parsed.reply} | ({"tool_calls": calls} if calls else {})
        whole = later | {"content": _thought(parsed.reasoning) + parsed.reply}
        shown = "\n".join(part for part in (parsed.reply, calls_as_text(parsed.calls)) if part)
        return _Exchange(whole, later, {"role": "assistant", "content": shown}, ids)

    def _output(self, role: Role, reply: ChatReply, call: ToolCall | None = None) -> Output:
        made = [f"<tool_call>\n{_raw(c)}\n</tool_call>" for c in reply.tool_calls]
        text = _thought(reply.reasoning) + "\n".join(part for part in (reply.text, *made) if part)
        return Output(role, self._turn, [], [], [], text, call, dict(reply.usage))


async def unfold_chat(
    task: Task,
    index: int,
    *,
    client: ChatEndpoint,
    settings: RolloutSettings,
    on_end: OnEnd | None = None,
    sent: list[Sent] | None = None,
) -> Rollout:
    """Run one rollout on a chat endpoint to its end (see unfold_in). `sent` gets every request that was made."""

    def conversation() -> ChatConversation:
        made = ChatConversation(task, index, client, settings)
        made.sent = made.sent if sent is None else sent
        return made

    return await unfold_in(conversation, task, index, settings=settings, on_end=on_end)


def _tagged(text: str) -> str:
    return f"<tool_response>\n{text}\n</tool_response>"


def _thought(reasoning: str) -> str:
    return f"<think>\n{reasoning.strip()}\n</think>\n\n" if reasoning.strip() else ""


def _raw(call: dict[str, Any]) -> str:
    function = call["function"]
    return f'{{"name": {json.dumps(function["name"], ensure_ascii=False)}, "arguments": {function["arguments"]}}}'
