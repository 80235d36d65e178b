"""The engine that trains on a CPU gives what verl's gives, wherever a loss reads it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensordict import TensorDict

Rows = list[tuple[int, int]]  # tokens of prompt and response


def nested(parts: list[torch.Tensor]) -> torch.Tensor:
    return torch.nested.as_nested_tensor(parts, layout=torch.jagged)


def micro_batch(rows: Rows, **flags: Any) -> TensorDict:
    from verl.utils import tensordict_utils as tu

    generator = torch.Generator().manual_seed(0)
    prompts, responses = ([torch.randint(7, 500, (row[i],), generator=generator) for row in rows] for i in (0, 1))
    whole = [torch.cat(row) for row in zip(prompts, responses, strict=True)]
    fields = {"prompts": prompts, "responses": responses, "input_ids": whole}
    fields["position_ids"] = [torch.arange(len(row)) for row in whole]
    data = TensorDict({name: nested(parts) for name, parts in fields.items()}, batch_size=len(rows))
    tu.assign_non_tensor(data, use_remove_padding=False, **flags)
    return data


def outputs(engine_class: Any, model: Any, data: TensorDict) -> dict[str, list[torch.Tensor]]:
    engine: Any = object.__new__(engine_class)
    engine.pad_to_length, engine.engine_config = None, SimpleNamespace(entropy_checkpointing=False)
    inputs, args = engine.prepare_model_inputs(data)
    with torch.no_grad():
        made = engine.prepare_model_outputs(model(**inputs, use_cache=False), args, data, None)
    return {name: list(values.unbind()) for name, values in made.items()}


@pytest.fixture(scope="module")
def engines(plugins: Any) -> tuple[Any, Any]:
    """verl's and ours."""
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

    from envace.training.cpu_backend.training_engine import CpuEngineWithLMHead

    return FSDPEngineWithLMHead, CpuEngineWithLMHead


@pytest.fixture(scope="module")
def model(random_model: Callable[..., Any]) -> Any:
    """Any policy."""
    return random_model()


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 30)), min_size=1, max_size=6),
    temperature=st.sampled_from([1.0, 0.6]),
    entropy=st.booleans(),
)
def test_what_a_loss_reads_is_what_verl_computes(
    engines: tuple[Any, Any], model: Any, rows: Rows, temperature: float, entropy: bool
) -> None:
    data = micro_batch(rows, temperature=temperature, calculate_entropy=entropy)
    wanted, found = (outputs(engine, model, data) for engine in engines)
    assert found.keys() == wanted.keys() == {"log_probs", *(["entropy"] if entropy else [])}
    for name, values in found.items():
        for (prompt, response), mine, theirs in zip(rows, values, wanted[name], strict=True):
            read = slice(prompt - 1, prompt + response - 1)
            assert mine.shape == theirs.shape == (prompt + response,)
            torch.testing.assert_close(mine[read], theirs[read], atol=2e-5, rtol=1e-5)
            assert not mine[: prompt - 1].any() and mine[-1] == 0


def test_logits_of_prompts_are_not_computed(engines: tuple[Any, Any]) -> None:
    engine: Any = object.__new__(engines[1])
    engine.pad_to_length = None
    inputs, _ = engine.prepare_model_inputs(micro_batch([(30, 5), (20, 4)], temperature=1.0))
    assert inputs["input_ids"].shape[1] == 35 and inputs["logits_to_keep"] == 16  # from position 19 on


def test_what_only_verl_computes_is_left_to_it(engines: tuple[Any, Any], model: Any) -> None:
    data = micro_batch([(6, 3), (4, 7)], temperature=1.0, calculate_sum_pi_squared=True)
    wanted, found = (outputs(engine, model, data) for engine in engines)
    assert found.keys() == wanted.keys() == {"log_probs", "sum_pi_squared"}
    for name, values in found.items():
        assert all(torch.equal(a, b) for a, b in zip(values, wanted[name], strict=True))


def test_training_on_a_cpu_uses_this_engine(plugins: Any, engines: tuple[Any, Any]) -> None:
    from verl.workers.engine.base import EngineRegistry

    registered = EngineRegistry._engines["language_model"]
    assert registered["fsdp"]["cpu"] is registered["fsdp2"]["cpu"] is engines[1]
