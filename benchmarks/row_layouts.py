"""Ways to lay training rows out in micro-batches: padded, packed end to end, and packed with shared beginnings once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from envace.training.row_merging import chains
from envace.types import Output, Role


@dataclass(frozen=True, slots=True)
class Row:
    """One output with its prompt before it."""

    ids: list[int]
    prompt: int  # how many of `ids` are the prompt
    rollout: str
    advantage: float


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Inputs (B, T) of one forward pass, and which of its flattened positions give which token of which row.

    `before` (N,) is the position whose logits predict `targets` (N,), a token of the output of row `rows` (N,).
    Tokens of one row stand together and in order. `mask` is None where positions tell the sequences apart.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor | None
    before: torch.Tensor
    targets: torch.Tensor
    rows: torch.Tensor


Line = list[int]
"""Rows that are computed as one sequence: the first one, which holds all the others as its beginnings."""


def padded(lines: Sequence[Line], rows: Sequence[Row], micro: int, width: int = 0) -> list[MicroBatch]:
    """`micro` lines a micro-batch in this order, padded on the right to the longest of them, or to `width` tokens."""
    made = []
    for start in range(0, len(lines), micro):
        part = lines[start : start + micro]
        sequences = [rows[line[0]].ids for line in part]
        length = max([width, *map(len, sequences)])
        ids = torch.zeros(len(part), length, dtype=torch.long)
        for b, sequence in enumerate(sequences):
            ids[b, : len(sequence)] = torch.tensor(sequence)
        mask = (torch.arange(length) < torch.tensor([[len(s)] for s in sequences])).long()
        starts = [(b * length, line) for b, line in enumerate(part)]
        made.append(MicroBatch(ids, torch.arange(length).expand(len(part), -1) * mask, mask, *_outputs(starts, rows)))
    return made


def packed(lines: Sequence[Line], rows: Sequence[Row], budget: int) -> list[MicroBatch]:
    """Lines end to end, the longest first, each in the first sequence that has room; too long a line gets its own."""
    bins: list[tuple[int, list[Line]]] = []
    for line in sorted(lines, key=lambda line: -len(rows[line[0]].ids)):
        length = len(rows[line[0]].ids)
        at = next((b for b, (used, _) in enumerate(bins) if used + length <= budget), len(bins))
        used, members = bins[at] if at < len(bins) else (0, [])
        bins[at : at + 1] = [(used + length, [*members, line])]
    made = []
    for _, members in bins:
        ids = [t for line in members for t in rows[line[0]].ids]
        positions = [p for line in members for p in range(len(rows[line[0]].ids))]
        starts, offset = [], 0
        for line in members:
            starts.append((offset, line))
            offset += len(rows[line[0]].ids)
        made.append(MicroBatch(torch.tensor([ids]), torch.tensor([positions]), None, *_outputs(starts, rows)))
    return made


def merged(rows: Sequence[Row]) -> list[Line]:
    """The rows of `envace.training.row_merging`, each with the output that holds all its others first."""
    of_rollout: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        of_rollout[row.rollout].append(i)
    lines = []
    for mine in of_rollout.values():
        outputs = [Output(Role.ACT, 0, r.ids[: r.prompt], r.ids[r.prompt :], [], "") for r in (rows[i] for i in mine)]
        lines += [[mine[i] for i in reversed(chain)] for chain in chains(outputs)]
    return lines


def _outputs(
    starts: Sequence[tuple[int, Line]], rows: Sequence[Row]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """`before`, `targets` and `rows` of a MicroBatch, from where each line begins."""
    before: list[int] = []
    targets: list[int] = []
    owners: list[int] = []
    for offset, line in starts:
        for i in line:
            row = rows[i]
            before += range(offset + row.prompt - 1, offset + len(row.ids) - 1)
            targets += row.ids[row.prompt :]
            owners += [i] * (len(row.ids) - row.prompt)
    return torch.tensor(before), torch.tensor(targets), torch.tensor(owners)
