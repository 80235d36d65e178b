"""Supervised fine-tuning of the tiny policy on demonstrations, by transformers' own Trainer."""

from __future__ import annotations

import tempfile
from typing import Any

import torch

from envace.config import CleanParams

RAMP_STEPS = 20
FINAL_SHARE = 0.1
PROGRESS_LINES = 20


def fine_tune(
    model: Any, batches: list[dict[str, torch.Tensor]], stage: CleanParams, *, seed: int, what: str
) -> list[float]:
    """Train `model` in place, one optimizer step a batch. Returns the mean loss of each twentieth of the way.

    The learning rate rises over 20 steps and falls linearly to a tenth of its peak. fp32, deterministic on one thread.
    """
    if not batches:
        return []
    from transformers import TrainingArguments

    from envace.training.base_model.progress import ProgressLine
    from envace.training.base_model.sft_trainer import LearnedTokensTrainer

    optimizer = torch.optim.AdamW(model.parameters(), lr=stage.learning_rate, betas=(0.9, 0.95), weight_decay=0.01)
    steps = len(batches)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min(1.0, (s + 1) / RAMP_STEPS) * (1 - (1 - FINAL_SHARE) * s / steps)
    )
    with tempfile.TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            output_dir=scratch,
            max_steps=steps,
            per_device_train_batch_size=1,  # one item is one whole token-budget batch
            max_grad_norm=1.0,
            logging_steps=max(1, steps // PROGRESS_LINES),
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            seed=seed,
            use_cpu=True,
            dataloader_pin_memory=False,
            remove_unused_columns=False,
            train_sampling_strategy="sequential",
        )
        trainer = LearnedTokensTrainer(
            model=model,
            args=arguments,
            train_dataset=batches,  # type: ignore[arg-type]
            data_collator=lambda items: items[0],
            optimizers=(optimizer, schedule),
            callbacks=[ProgressLine(what, steps)],
        )
        trainer.remove_callback(_printer())
        trainer.train()
    model.eval()
    return [round(float(entry["loss"]), 6) for entry in trainer.state.log_history if "loss" in entry]


def _printer() -> type:
    from transformers.trainer_callback import PrinterCallback

    return PrinterCallback
