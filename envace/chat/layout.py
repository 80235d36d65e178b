"""Tokens in, tokens out: builds prompts by splicing token ids, so that nothing the engine sampled is ever re-encoded.

The texts around each kind of message are read off the tokenizer's own chat template once (envace.chat.template). What
code writes is encoded a whole message at a time, and messages begin and end at special tokens, so splicing gives the
ids that rendering the whole conversation would give.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from envace.chat.conversation import render_conversation
from envace.chat.cutting import cut_spans
from envace.chat.parser import Span
from envace.chat.template import ChatTemplate, Message
from envace.errors import EngineError
from envace.files import compact_json
from envace.types import Task, ToolCall

RolePrompts = Literal["header", "instructions"]
Item = str | list[int]
"""A tool result: text that is to be encoded, or ids that were sampled (without an end token)."""


class ChatLayout:
    """Message segments as token ids for one tokenizer.

    The act role continues `act_header`. The rehearse role continues the header of a tool message where the template
    has one, so that both roles share one prefix; elsewhere it needs an instruction (`rollout.role_prompts`).

    Raises EngineError where the template cannot be used this way.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._template = ChatTemplate(tokenizer)
        self._frames = frames = self._template.frames
        if tokenizer.eos_token_id is None:
            raise EngineError("the tokenizer has no eos_token, so outputs could never end; set the chat's end token")
        self.end_id = int(tokenizer.eos_token_id)
        self._end = tokenizer.convert_ids_to_tokens(self.end_id)
        if not frames.assistant_after.startswith(self._end):
            raise EngineError(
                f"chat template: an assistant message ends with {frames.assistant_after!r}, which does not begin with "
                f"the tokenizer's eos_token {self._end!r}; make the end token of the chat the eos_token"
            )
        self.act_header = self._encode(frames.generation)
        self.opens_reasoning = frames.opens_reasoning
        self._cut_header = self._encode(frames.assistant_before)
        self._closing = self._encode(frames.assistant_after[len(self._end) :])
        can_continue = frames.results_are_messages and frames.results_after.startswith(self._end)
        self._rehearse_header = self._encode(frames.results_before) if can_continue else None
        self._require_clean_seams()

    @property
    def rehearse_header(self) -> list[int]:
        """The header of a tool message. Raises EngineError where the template has none that a policy could continue."""
        if self._rehearse_header is None:
            raise EngineError(
                "chat template: tool results are not messages of their own that end with the eos_token, so the "
                "rehearse role cannot continue one; set rollout.role_prompts to instructions"
            )
        return self._rehearse_header

    def require(self, role_prompts: RolePrompts) -> None:
        """Raise EngineError where the template does not allow that way of prompting the roles."""
        if role_prompts == "header":
            _ = self.rehearse_header

    def opening(self, task: Task) -> list[int]:
        """System prompt, tools and first user message, ending where an assistant message would begin."""
        messages: list[Message] = []
        if task.system_prompt is not None:
            messages.append({"role": "system", "content": task.system_prompt})
        messages.append({"role": "user", "content": task.turns[0].user_message})
        return self._encode(self._template.render(messages, tools=[t.openai() for t in task.tools]))

    def conversation(self, messages: list[Message], tools: list[Message] | None = None) -> list[int]:
        """The prompt of an act output after any conversation in the OpenAI form (text from outside, so encoded)."""
        return self._encode(render_conversation(self._template, messages, tools))

    def user(self, text: str) -> list[int]:
        """A whole later user message."""
        return self._encode(self._frames.user_before + text + self._frames.user_after)

    def results(self, items: Sequence[Item], open_ended: bool = False) -> list[int]:
        """All tool results that answer one output, in order; `open_ended`: up to where the next one would begin."""
        frames, ids, text = self._frames, [], self._frames.results_before
        for index, item in enumerate(items):
            text += frames.results_between if index else ""
            if isinstance(item, str):
                text += item
            else:
                ids += self._encode(text) + item
                text = ""
        if open_ended:
            text += frames.results_between if items else ""
        elif not items:
            return []
        else:
            text += frames.results_after
        return ids + self._encode(text)

    def observation(self, text: str) -> list[int]:
        """The one tool result that answers an output, not written by the policy."""
        return self.results([text])

    def act_message(self, sampled: list[int]) -> list[int]:
        """An act output as it stands in the history, header and all."""
        return self.act_header + self.closed(sampled)

    def act_message_without(self, sampled: list[int], thoughts: Sequence[Span]) -> list[int]:
        """The same with its reasoning cut out: what an environment is shown, and what later turns keep.

        `thoughts` are spans of `text(sampled)`.
        """
        return self._cut_header + self.closed(self.cut(sampled, thoughts) if thoughts else sampled)

    def cut(self, sampled: list[int], spans: Sequence[Span]) -> list[int]:
        """Sampled ids without the end token and without the tokens of these spans of their text."""
        return cut_spans(self._without_end(sampled), spans, self._decode)

    def closed(self, sampled: list[int]) -> list[int]:
        """A sampled output as it stands in the history: its own ids, the end token, the template's separator."""
        return [*self._without_end(sampled), self.end_id, *self._closing]

    def finished(self, sampled: list[int]) -> bool:
        """Whether the policy ended the output itself (False: it was cut by length)."""
        return bool(sampled) and sampled[-1] == self.end_id

    def text(self, sampled: list[int]) -> str:
        """Decoded text of an output, without its end token, with all other special tokens."""
        return self._decode(self._without_end(sampled))

    def written(self, reply: str, calls: list[ToolCall]) -> str:
        """A reference output as the template writes it."""
        return self._template.written(reply, calls)

    def encode_output(self, text: str) -> list[int]:
        """Ids of a reference output with its end token (for supervised training; never used on sampled text)."""
        return [*self._encode(text), self.end_id]

    def _without_end(self, sampled: list[int]) -> list[int]:
        return sampled[:-1] if self.finished(sampled) else sampled

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def _decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=False)

    def _require_clean_seams(self) -> None:
        frames = self._frames
        reply = self._encode(frames.assistant_before + "a" + frames.assistant_after)
        segments = [self.user("u"), reply, self.results(["r", "s"]), reply, self.user("u"), self.act_header]
        text = frames.user_before + "u" + frames.user_after + frames.assistant_before + "a" + frames.assistant_after
        text += frames.results_before + "r" + frames.results_between + "s" + frames.results_after
        text += frames.assistant_before + "a" + frames.assistant_after
        text += frames.user_before + "u" + frames.user_after + frames.generation
        if [i for segment in segments for i in segment] != self._encode(text):
            raise EngineError(
                "chat template: messages do not begin and end at tokens of their own, so their ids cannot be spliced; "
                "make the template's message marks special tokens of the tokenizer"
            )


def render_calls(calls: list[ToolCall]) -> str:
    """Tool calls as the tiny tokenizer's policy writes them (one block a call, no white space between)."""
    blocks = (f'{{"name": {compact_json(c.tool_name)}, "arguments": {c.arguments}}}' for c in calls)
    return "".join(f"<tool_call>{b}</tool_call>" for b in blocks)
