"""Builds the tiny base policy in its stated stages: clean references, then references with seeded faults."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from envace.chat.layout import ChatLayout
from envace.config import BuildBaseModelParams, CleanParams, SampleParams
from envace.data.sample import Demonstration, FaultRates, build_world, generate_demonstrations
from envace.training.base_model.model import build_model
from envace.training.base_model.rows import demonstration_rows, token_budget_batches
from envace.training.base_model.tokenizer import build_tokenizer
from envace.training.base_model.warm_start import fine_tune


@dataclass(frozen=True, slots=True)
class BasePolicies:
    """The base policy, and the two that results are shown beside.

    `clean`: after stage 1 only, the ceiling that removing the faults could reach. `control`: the base after as many
    more supervised steps on the same faulty references, to show that supervision on them is not what helps.
    """

    tokenizer: Any
    clean: Any
    base: Any
    control: Any
    losses: dict[str, list[float]]


def build_base_policies(params: BuildBaseModelParams, sample: SampleParams) -> BasePolicies:
    """Generate demonstrations of the sample's world and warm-start a small Qwen3 on them. Deterministic by seed."""
    world = build_world(sample.seed)
    clean = generate_demonstrations(world, params.demonstrations, params.seed)
    faults = FaultRates(params.faulty.act_random, params.faulty.act_dominant, params.faulty.result)
    faulty = generate_demonstrations(world, params.demonstrations, params.seed, faults)
    tokenizer = build_tokenizer(clean, params.architecture.vocabulary, params.architecture.max_positions)
    layout = ChatLayout(tokenizer)

    def train(model: Any, demonstrations: list[Demonstration], stage: CleanParams, seed: int, what: str) -> list[float]:
        rows = [row for d in demonstrations for row in demonstration_rows(layout, d)]
        batches = token_budget_batches(rows, stage.batch_tokens, stage.steps, seed, tokenizer.pad_token_id)
        return fine_tune(model, batches, stage, seed=seed, what=what)

    model = build_model(tokenizer, params.architecture, params.seed)
    losses = {"clean": train(model, clean, params.clean, params.seed, "warm start 1 of 2, clean references")}
    ceiling = copy.deepcopy(model)
    losses["faulty"] = train(model, faulty, params.faulty, params.seed + 1, "warm start 2 of 2, faulty references")
    control = copy.deepcopy(model)
    losses["control"] = train(control, faulty, params.faulty, params.seed + 2, "control, more faulty references")
    return BasePolicies(tokenizer, ceiling, model, control, losses)


def save_policy(model: Any, tokenizer: Any, folder: Any) -> None:
    """Write a Hugging Face folder (safetensors, tokenizer, chat template)."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
