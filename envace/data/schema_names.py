"""The fixed words of the raw schema: roles, keys, what a checklist item may look at."""

from __future__ import annotations

from typing import Literal

Target = Literal["tool_call", "tool_result", "reasoning", "reply", "user"]

ROLES = ("system", "user", "assistant", "tool")
ROW_KEYS = ("uuid", "messages", "tools", "checklists", "outcome", "world")
MESSAGE_KEYS = ("role", "content", "tool_calls")
ITEM_KEYS = (
    "id",
    "evidence",
    "focus_on",
    "question",
    "pass_condition",
    "failure_examples",
    "required_for_next_turn",
    "dependence",
    "weight",
)
EVIDENCE_KEYS = ("turn", "step", "from", "snippet")
FOCUS: dict[str, Target] = {
    "assistant.tool_calls": "tool_call",
    "tool.content": "tool_result",
    "assistant.content.thinking": "reasoning",
    "assistant.content.user_visible_reply": "reply",
    "user.content": "user",
}
"""What an item or its evidence looks at, in CM2's words, and the canonical word for it."""
NOT_STATED = "not stated"
"""The licence of a source whose owner names none."""
