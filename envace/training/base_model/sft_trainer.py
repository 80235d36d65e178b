"""transformers' Trainer with the vocabulary projected only where a token is learned: on a CPU a fifth of the time."""

from __future__ import annotations

from typing import Any

import torch
from transformers import Trainer

from envace.training.base_model.rows import IGNORED


class LearnedTokensTrainer(Trainer):
    """The mean cross-entropy over learned tokens, as the model's own loss computes it."""

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Trainer's hook. `inputs` has input_ids and labels of shape (B, T)."""
        targets = inputs["labels"][:, 1:]
        learned = targets != IGNORED
        hidden = model.base_model(input_ids=inputs["input_ids"]).last_hidden_state[:, :-1][learned]
        return torch.nn.functional.cross_entropy(model.get_output_embeddings()(hidden), targets[learned])
