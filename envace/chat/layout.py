"""Tokens in, tokens out: builds prompts by splicing token ids, so that nothing the engine sampled is ever re-encoded.

The texts around each kind of message are read off the tokenizer's own chat template once, by rendering a probe
conversation. Every message is encoded as one whole segment, and segments begin and end at special tokens, so splicing
gives the ids that rendering the whole conversation would give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from envace.errors import EngineError
from envace.files import compact_json
from envace.types import Task, ToolCall

_PROBE = "\u241fPROBE\u241f"


@dataclass(frozen=True, slots=True)
class _Frame:
    """The template's text before and after a message's content."""

    before: str
    after: str


class ChatLayout:
    """Message segments as token ids for one tokenizer.

    The act role continues the header of an assistant message, the rehearse role the header of a tool message: the
    prompt of a rehearsal is the act prompt, the act output and that header, so both roles share one prefix.

    Raises EngineError where the template cannot be used this way.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._user = self._frame("user", [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}])
        asked = [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}]
        self._tool = self._frame("tool", asked)
        whole = self._render(asked[:1], generate=True)
        assistant_header = whole[len(self._render(asked[:1])) :]
        self.end_id = int(tokenizer.eos_token_id)
        end = tokenizer.convert_ids_to_tokens(self.end_id)
        for kind, frame in (("user", self._user), ("tool", self._tool)):
            if not frame.after.startswith(end):
                raise EngineError(f"chat template: a {kind} message does not end with {end!r}; it cannot be rehearsed")
        self.act_header = self._encode(assistant_header)
        self.rehearse_header = self._encode(self._tool.before)
        self._closing = self._encode(self._tool.after[len(end) :])

    def opening(self, task: Task) -> list[int]:
        """System prompt, tools and first user message, ending where an assistant message would begin."""
        messages: list[dict[str, Any]] = []
        if task.system_prompt is not None:
            messages.append({"role": "system", "content": task.system_prompt})
        messages.append({"role": "user", "content": task.turns[0].user_message})
        return self._encode(self._render(messages, tools=[t.openai() for t in task.tools]))

    def user(self, text: str) -> list[int]:
        """A whole later user message."""
        return self._encode(self._user.before + text + self._user.after)

    def observation(self, text: str) -> list[int]:
        """A whole tool message that the policy did not write."""
        return self._encode(self._tool.before + text + self._tool.after)

    def closed(self, sampled: list[int]) -> list[int]:
        """A sampled output as it stands in the history: its own ids, the end token, the template's separator."""
        ended = sampled if sampled and sampled[-1] == self.end_id else [*sampled, self.end_id]
        return ended + self._closing

    def finished(self, sampled: list[int]) -> bool:
        """Whether the policy ended the output itself (False: it was cut by length)."""
        return bool(sampled) and sampled[-1] == self.end_id

    def text(self, sampled: list[int]) -> str:
        """Decoded text of an output, without its end token, with all other special tokens."""
        ids = sampled[:-1] if self.finished(sampled) else sampled
        return self._tokenizer.decode(ids, skip_special_tokens=False)

    def encode_output(self, text: str) -> list[int]:
        """Ids of a reference output with its end token (for supervised training; never used on sampled text)."""
        return [*self._encode(text), self.end_id]

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def _render(self, messages: list[dict[str, Any]], tools: list[Any] | None = None, generate: bool = False) -> str:
        return self._tokenizer.apply_chat_template(
            messages, tools=tools or None, add_generation_prompt=generate, tokenize=False
        )

    def _frame(self, role: str, history: list[dict[str, Any]]) -> _Frame:
        base = self._render(history)
        whole = self._render([*history, {"role": role, "content": _PROBE}])
        if not whole.startswith(base) or _PROBE not in whole[len(base) :]:
            raise EngineError(f"chat template: appending a {role} message changes what stands before it")
        before, _, after = whole[len(base) :].partition(_PROBE)
        return _Frame(before, after)


def render_calls(calls: list[ToolCall]) -> str:
    """Tool calls as the tiny tokenizer's policy writes them (one block a call, no white space between)."""
    blocks = (f'{{"name": {compact_json(c.tool_name)}, "arguments": {c.arguments}}}' for c in calls)
    return "".join(f"<tool_call>{b}</tool_call>" for b in blocks)
