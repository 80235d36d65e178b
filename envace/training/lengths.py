"""Check 33 exactly, by the base model's own tokenizer: tasks that cannot fit are left out before training, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from envace.chat.layout import ChatLayout, RolePrompts
from envace.data.content import SplitContent, render_content
from envace.files import read_json, sha256_file
from envace.types import Step, Task


@dataclass(frozen=True)
class TooLong:
    """A task whose first prompt or whole reference has more tokens than the model or the settings allow."""

    task_id: str
    prompt_tokens: int
    reference_tokens: int


@dataclass(frozen=True)
class Fit:
    """The tasks that fit, those that do not, and the limits and the tokenizer that decided."""

    tasks: list[Task]
    too_long: list[TooLong]
    max_prompt_tokens: int
    max_positions: int
    tokenizer_sha256: str

    def record(self) -> dict[str, Any]:
        """What the training summary says about it."""
        return {
            "max_prompt_tokens": self.max_prompt_tokens,
            "max_positions": self.max_positions,
            "tokenizer_sha256": self.tokenizer_sha256,
            "left_out": [asdict(task) for task in self.too_long],
        }


def fit_tasks(
    tasks: Sequence[Task], model: Path, max_prompt_tokens: int, role_prompts: RolePrompts | None = None
) -> Fit:
    """Measure every task with the tokenizer in the folder `model`.

    Raises EngineError where its chat template cannot be used, or not with these `role_prompts`.
    """
    from transformers import AutoTokenizer

    layout = ChatLayout(AutoTokenizer.from_pretrained(model, local_files_only=True, trust_remote_code=False))
    if role_prompts is not None:
        layout.require(role_prompts)
    max_positions = int(read_json(model / "config.json")["max_position_embeddings"])
    fitting: list[Task] = []
    too_long: list[TooLong] = []
    for task in tasks:
        prompt, reference = token_lengths(task, layout)
        if prompt > max_prompt_tokens or reference > max_positions:
            too_long.append(TooLong(task.task_id, prompt, reference))
        else:
            fitting.append(task)
    return Fit(fitting, too_long, max_prompt_tokens, max_positions, sha256_file(model / "tokenizer.json"))


def token_lengths(task: Task, layout: ChatLayout) -> tuple[int, int]:
    """Tokens of the first prompt, and of the reference from the system message to the last reply."""
    opening = len(layout.opening(task))
    whole = opening
    for turn in task.turns:
        if turn.turn_index:
            whole += len(layout.user(turn.user_message))
        for step in turn.reference_steps:
            whole += len(layout.act_message(layout.encode_output(_text(step, layout))))
            whole += len(layout.results([result.content for result in step.tool_results]))
    return opening, whole


def _text(step: Step, layout: ChatLayout) -> str:
    content = render_content(SplitContent(step.reasoning, step.reply, step.content_frame))
    return content + layout.written("", step.tool_calls)
