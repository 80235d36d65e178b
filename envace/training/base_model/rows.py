"""Demonstrations as token rows for supervised training, built by the same layout that rollouts use."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from envace.chat.layout import ChatLayout, render_calls
from envace.data.sample import Demonstration, DemonstrationTurn
from envace.types import Role, Task, ToolSpec, Turn

IGNORED = -100
"""The label of a token that is not learned (transformers' convention)."""


@dataclass(frozen=True, slots=True)
class Row:
    """Token ids and labels of one conversation, equally long."""

    ids: list[int]
    labels: list[int]


def demonstration_rows(layout: ChatLayout, demonstration: Demonstration) -> list[Row]:
    """One row where both roles see the same history, else one a role, each learning only its own outputs."""
    if demonstration.act == demonstration.rehearse:
        return [_row(layout, demonstration.tools, demonstration.act, frozenset(Role))]
    acts = _row(layout, demonstration.tools, demonstration.act, frozenset([Role.ACT]))
    rehearsals = _row(layout, demonstration.tools, demonstration.rehearse, frozenset([Role.REHEARSE]))
    return [row for row in (acts, rehearsals) if any(label != IGNORED for label in row.labels)]


def _row(
    layout: ChatLayout, tools: Sequence[ToolSpec], turns: Sequence[DemonstrationTurn], learned: frozenset[Role]
) -> Row:
    ids: list[int] = []
    labels: list[int] = []

    def given(tokens: list[int]) -> None:
        ids.extend(tokens)
        labels.extend([IGNORED] * len(tokens))

    def written(role: Role, text: str) -> None:
        given(layout.act_header if role is Role.ACT else layout.rehearse_header)
        output = layout.encode_output(text)
        ids.extend(output)
        labels.extend(output if role in learned else [IGNORED] * len(output))
        given(layout.closed(output)[len(output) :])

    for index, turn in enumerate(turns):
        given(layout.opening(_opening_task(tools, turn)) if index == 0 else layout.user(turn.user_message))
        for calls, results in turn.steps:
            written(Role.ACT, render_calls(list(calls)))
            for result in results:
                written(Role.REHEARSE, result)
        written(Role.ACT, turn.reply)
    return Row(ids, labels)


def _opening_task(tools: Sequence[ToolSpec], turn: DemonstrationTurn) -> Task:
    first = Turn(turn_index=0, user_message=turn.user_message, reference_steps=[])
    return Task(
        task_id="demonstration",
        content_sha256="",
        split="train",
        system_prompt=None,
        tools=list(tools),
        turns=[first],
        rubrics=[],
        outcome=None,
        world=None,
        flags=[],
        provenance="sample",
    )


def token_budget_batches(
    rows: Sequence[Row], budget: int, count: int, seed: int, pad_id: int
) -> list[dict[str, torch.Tensor]]:
    """`count` padded batches of at most `budget` tokens, rows of like length together, reshuffled every pass.

    Each batch holds input_ids and labels of shape (B, T), padded on the right, where a causal mask hides it.
    Labels are set only where they are learned.
    """
    rng = random.Random(seed)
    batches: list[dict[str, torch.Tensor]] = []
    while len(batches) < count:
        groups = _groups(rows, budget, rng)
        rng.shuffle(groups)
        batches.extend(_pad([rows[i] for i in group], pad_id) for group in groups)
    return batches[:count]


def _groups(rows: Sequence[Row], budget: int, rng: random.Random) -> list[list[int]]:
    jitter = [len(row.ids) + rng.random() * 20 for row in rows]
    groups: list[list[int]] = []
    longest = 0
    for i in sorted(range(len(rows)), key=jitter.__getitem__):
        longest = max(longest, len(rows[i].ids))
        if groups and longest * (len(groups[-1]) + 1) <= budget:
            groups[-1].append(i)
        else:
            groups.append([i])
            longest = len(rows[i].ids)
    return groups


def _pad(rows: Sequence[Row], pad_id: int) -> dict[str, torch.Tensor]:
    width = max(len(row.ids) for row in rows)
    ids = torch.full((len(rows), width), pad_id)
    labels = torch.full((len(rows), width), IGNORED)
    for i, row in enumerate(rows):
        ids[i, : len(row.ids)] = torch.tensor(row.ids)
        labels[i, : len(row.ids)] = torch.tensor(row.labels)
    return {"input_ids": ids, "labels": labels}
