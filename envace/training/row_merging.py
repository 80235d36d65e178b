"""Which outputs of a rollout share one training row: those whose prompts continue what came before."""

from __future__ import annotations

from collections.abc import Sequence

from envace.types import Output


def chains(outputs: Sequence[Output]) -> list[list[int]]:
    """Indices of the outputs, in rows: each prompt in a row begins with the prompt and the tokens of the one before.

    A causal model gives the same log-probabilities in the longer sequence, so a row is computed once for all of them.
    Where a history was rewritten (a template that drops earlier reasoning, calls answered side by side) a new row
    begins. Every output is in exactly one row, and rows come in the order of their first outputs.
    """
    rows: list[list[int]] = []
    ends: list[list[int]] = []  # the whole sequence of each row so far
    for i, output in enumerate(outputs):
        prompt = output.prompt_ids
        sequence = [*prompt, *output.token_ids]
        home = next((r for r, end in enumerate(ends) if len(end) <= len(prompt) and prompt[: len(end)] == end), None)
        if home is None:
            rows.append([i])
            ends.append(sequence)
        else:
            rows[home].append(i)
            ends[home] = sequence
    return rows


def joined(outputs: Sequence[Output], trained: bool) -> tuple[list[int], list[int], list[float], list[tuple[int, int]]]:
    """One row of a chain: response tokens, mask, log-probabilities, and where each output begins and ends in them.

    Tokens between outputs (headers, results that nobody sampled) have mask 0 and log-probability 0.
    """
    start = len(outputs[0].prompt_ids)
    response = [*outputs[-1].prompt_ids, *outputs[-1].token_ids][start:]
    mask, log_probs = [0] * len(response), [0.0] * len(response)
    spans = []
    for output in outputs:
        begin = len(output.prompt_ids) - start
        end = begin + len(output.token_ids)
        mask[begin:end] = [int(trained)] * len(output.token_ids)
        log_probs[begin:end] = output.log_probs
        spans.append((begin, end))
    return response, mask, log_probs, spans
