"""Temperature and nucleus sampling from given uniform draws, so that a seed fixes the output whatever the batch."""

from __future__ import annotations

import torch


def sample_tokens(
    logits: torch.Tensor, *, temperature: torch.Tensor, top_p: torch.Tensor, draws: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """One token a row.

    Args:
        logits: (B, V). temperature: (B,), 0 is greedy. top_p: (B,) in (0, 1]. draws: (B,) uniform in [0, 1).

    Returns:
        Token ids (B,) and their log-probabilities (B,) under the temperature-scaled distribution, before nucleus
        truncation: what a trainer recomputes at the same temperature. Greedy rows are scaled by 1.
    """
    greedy = temperature == 0
    scaled = logits / torch.where(greedy, torch.ones_like(temperature), temperature)[:, None]
    log_probs = scaled.log_softmax(-1)
    weights = log_probs.double().exp()
    if bool((top_p < 1).any()):
        ranked, order = weights.sort(-1, descending=True)
        outside = ranked.cumsum(-1) - ranked >= top_p[:, None]
        weights = torch.zeros_like(weights).scatter(1, order, ranked.masked_fill(outside, 0.0))
    cumulative = weights.cumsum(-1)
    target = draws.double()[:, None] * cumulative[:, -1:]
    tokens = torch.searchsorted(cumulative, target, right=True).squeeze(1).clamp(max=logits.shape[1] - 1)
    tokens = torch.where(greedy, logits.argmax(-1), tokens)
    return tokens, log_probs.gather(1, tokens[:, None]).squeeze(1)
