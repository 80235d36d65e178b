"""Measures how likely a policy finds the clean references of the validation tasks; run as a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envace.config import Params
from envace.data.sample import Demonstration, DemonstrationTurn
from envace.errors import DataError
from envace.files import read_json, write_json
from envace.stage import stage_main
from envace.types import Task

_ROWS_AT_ONCE = 32


def run(params: Params) -> None:
    """Write loss.json: the mean cross-entropy of a learned token of both roles, over the validation tasks."""
    from envace.data.task_reader import read_tasks

    job = read_json(Path("job.json"))
    tasks = read_tasks(Path(job["tasks"]), splits=("validation",))
    if not tasks:
        raise DataError(
            f"{job['tasks']}: no validation task, so no loss to choose by; set prepare_data.validation_share"
        )
    loss, tokens = reference_loss(Path(job["policy"]), tasks)
    write_json(Path("loss.json"), {"loss": round(loss, 6), "tokens": tokens, "tasks": len(tasks)})
    print(f"validation loss {loss:.4f} over {tokens} tokens of {len(tasks)} tasks")


def reference_loss(folder: Path, tasks: Sequence[Task]) -> tuple[float, int]:
    """The mean cross-entropy a learned token, and how many those are."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from envace.chat.layout import ChatLayout
    from envace.training.base_model.rows import IGNORED, demonstration_rows

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    layout = ChatLayout(tokenizer)
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32).eval()
    rows = [row for task in tasks for row in demonstration_rows(layout, reference_of(task))]
    rows.sort(key=lambda row: len(row.ids))
    total, count = 0.0, 0
    for at in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[at : at + _ROWS_AT_ONCE]
        width = max(len(row.ids) for row in part)
        ids = torch.zeros((len(part), width), dtype=torch.long)
        labels = torch.full((len(part), width), IGNORED)
        for i, row in enumerate(part):  # padded on the right, where a causal mask hides it
            ids[i, : len(row.ids)] = torch.tensor(row.ids)
            labels[i, : len(row.labels)] = torch.tensor(row.labels)
        with torch.no_grad():
            logits = model(input_ids=ids).logits[:, :-1]
        targets = labels[:, 1:]
        total += float(
            torch.nn.functional.cross_entropy(logits[targets != IGNORED], targets[targets != IGNORED], reduction="sum")
        )
        count += int((targets != IGNORED).sum())
    return total / count, count


def reference_of(task: Task) -> Demonstration:
    """A task's recorded calls, results and replies as a clean demonstration of both roles."""
    turns = []
    for turn in task.turns:
        steps = tuple(
            (tuple(step.tool_calls), tuple(result.content for result in step.tool_results))
            for step in turn.reference_steps
            if step.tool_calls
        )
        turns.append(DemonstrationTurn(turn.user_message, steps, turn.reference_steps[-1].reply))
    return Demonstration(tuple(task.tools), tuple(turns), tuple(turns), ())


if __name__ == "__main__":
    stage_main("loss", run)
