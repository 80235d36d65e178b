"""One conversation so far as token ids, from which the prompt of either role is spliced (method, section 2).

The rule of prompts. Within a turn every act prompt extends the one before it and the output that followed. Where a new
turn begins and `keep_reasoning` is `current_turn`, the reasoning of the turns before is cut out by its ids, which is
what Qwen3's template does at inference; with `all` every prompt extends the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from envace.chat.layout import ChatLayout, Item, RolePrompts
from envace.chat.parser import Span
from envace.types import Task

KeepReasoning = Literal["all", "current_turn"]


@dataclass(frozen=True, slots=True)
class _Message:
    """A message as the act role sees it in its own turn, and without reasoning."""

    whole: list[int]
    cut: list[int]


class TokenHistory:
    """Grows by messages; gives the prompts. Raises EngineError where the layout does not allow these role prompts."""

    def __init__(self, layout: ChatLayout, keep_reasoning: KeepReasoning, role_prompts: RolePrompts) -> None:
        layout.require(role_prompts)
        self._layout, self._keep, self._role_prompts = layout, keep_reasoning, role_prompts
        self._earlier: list[int] = []
        self._turn: list[_Message] = []
        self._results: list[Item] = []

    def open(self, task: Task) -> None:
        """Begin with the system prompt, the tools and the first user message."""
        self._add(self._layout.opening(task))

    def user(self, text: str) -> None:
        """Begin a later turn."""
        self._settle_results()
        self._earlier += [i for m in self._turn for i in (m.whole if self._keep == "all" else m.cut)]
        self._turn = []
        self._add(self._layout.user(text))

    def act(self, sampled: list[int], thoughts: Sequence[Span]) -> None:
        """Append an act output by its own ids. `thoughts` are the spans of its reasoning in the layout's text of it."""
        self._settle_results()
        layout = self._layout
        self._turn.append(_Message(layout.act_message(sampled), layout.act_message_without(sampled, thoughts)))

    def result(self, item: Item) -> None:
        """Append a tool result that answers the latest act output: text by code, or ids that were sampled."""
        self._results.append(item)

    def act_prompt(self) -> list[int]:
        """What the act role continues: everything so far, and the header of an assistant message."""
        self._settle_results()
        return self._before(None, self._layout.act_header)

    def rehearse_prompt(self, note: str | None, *, with_results: bool) -> list[int]:
        """What the rehearse role continues for the next result of the latest act output.

        The act prompt, then the act output without its reasoning, then (`with_results`) the results that this output
        already has. At the end a user message with `note`, if there is one, and the header that the role continues: a
        tool message's, or with instructions an assistant message's. None of that end stays in the history.
        """
        layout, results = self._layout, self._results if with_results else []
        if self._role_prompts == "header" and note is None:
            end = layout.results(results, open_ended=True)
        else:
            header = layout.rehearse_header if self._role_prompts == "header" else layout.act_header
            end = layout.results(results) + layout.user(note or "") + header
        return self._before(len(self._turn) - 1, self._turn[-1].cut, end)

    def _before(self, count: int | None, *ends: list[int]) -> list[int]:
        """The earlier turns, the first `count` messages of this one (None: all), and the ends: copied once."""
        ids = self._earlier.copy()
        for message in self._turn[:count]:
            ids += message.whole
        for end in ends:
            ids += end
        return ids

    def _settle_results(self) -> None:
        if self._results:
            self._add(self._layout.results(self._results))
            self._results = []

    def _add(self, ids: list[int]) -> None:
        self._turn.append(_Message(ids, ids))
