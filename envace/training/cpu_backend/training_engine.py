"""verl's FSDP engine on a CPU: logits from the shortest prompt's end on, all log-probabilities in one operation."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import cross_entropy
from verl.utils import tensordict_utils as tu
from verl.utils.torch_functional import entropy_from_logits
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

_LEFT_TO_VERL = ("use_remove_padding", "use_fused_kernels", "distillation_use_topk", "calculate_sum_pi_squared")
_FIRST = "envace_first_column"


class CpuEngineWithLMHead(FSDPEngineWithLMHead):
    """The engine that trains. Its results are verl's, but for the positions that no loss reads, which are 0.

    verl computes logits for prompts too, and takes log-probabilities in a loop over tokens, which spares the memory of
    a GPU; on a CPU with a small model the two cost time for nothing (benchmarks/README.md).
    """

    def prepare_model_inputs(self, micro_batch: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """verl's inputs, and how many columns of logits the model is to compute."""
        inputs, args = super().prepare_model_inputs(micro_batch)  # type: ignore[attr-defined]
        if not any(tu.get_non_tensor_data(micro_batch, name, default=False) for name in _LEFT_TO_VERL):
            shortest = int(micro_batch["prompts"].offsets().diff().min())
            args[_FIRST] = max(0, shortest - 1)  # the position before a response predicts its first token
            inputs["logits_to_keep"] = inputs["input_ids"].shape[1] - args[_FIRST]
        return inputs, args

    def prepare_model_outputs(
        self, output: Any, output_args: dict[str, Any], micro_batch: Any, logits_processor_func: Any
    ) -> dict[str, torch.Tensor]:
        """Log-probabilities of the next token, and entropies where asked for: nested (rows, tokens)."""
        if _FIRST not in output_args:
            theirs = super().prepare_model_outputs  # type: ignore[attr-defined]
            return theirs(output, output_args, micro_batch, logits_processor_func)
        offsets = micro_batch["input_ids"].offsets()
        lengths, prompts = offsets.diff(), micro_batch["prompts"].offsets().diff()
        row = torch.repeat_interleave(lengths)  # of each token of the micro-batch, rows one after the other
        position = torch.arange(len(row)) - offsets[row]
        read = (position >= prompts[row] - 1) & (position < lengths[row] - 1)
        logits = output.logits[row[read], position[read] - output_args[_FIRST]]
        if not output_args["temperature_is_one"]:
            logits = logits / output_args["temperature"][row[read], None]
        labels = output_args["input_ids_rmpad_rolled"][read]
        found = {"log_probs": -cross_entropy(logits, labels, reduction="none")}
        if tu.get_non_tensor_data(micro_batch, "calculate_entropy", default=False):
            found["entropy"] = entropy_from_logits(logits)
        return {name: _spread(values, read, offsets) for name, values in found.items()}


def _spread(values: torch.Tensor, read: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """`values` at the places that are read, 0 elsewhere, as nested rows."""
    return torch.nested.nested_tensor_from_jagged(values.new_zeros(len(read)).masked_scatter(read, values), offsets)
