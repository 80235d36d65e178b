"""The CPU rollout server: verl's requests answered, new weights taken whole or refused."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from envace.errors import EngineError

SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "max_tokens": 12, "seed": 5, "logprobs": True}


@pytest.fixture
def server(plugins: Any, saved_policy: Path) -> Any:
    """The actor's body, without Ray."""
    from envace.training.cpu_backend.rollout_server import CpuServer

    return CpuServer(str(saved_policy), 200)


def generate(server: Any, session: str = "t#0", prompt: list[int] | None = None) -> Any:
    return asyncio.run(server.generate(prompt or list(range(50, 90)), SAMPLING, session))


def weights_of(model: Any) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_an_answer_has_ids_log_probs_and_the_version_of_the_weights(server: Any) -> None:
    asyncio.run(server.set_global_steps(3))
    output = generate(server)
    assert len(output.token_ids) == len(output.log_probs) == 12 and output.extra_fields["global_steps"] == 3
    assert generate(server, "other").token_ids == output.token_ids


def test_a_later_prompt_of_a_session_starts_from_its_cached_prefix(server: Any) -> None:
    prompt = list(range(50, 90))
    output = generate(server, prompt=prompt)
    before = server._engine.stats.prefilled_tokens
    generate(server, prompt=[*prompt, *output.token_ids, 60])
    assert server._engine.stats.prefilled_tokens - before == 2


@pytest.mark.parametrize("with_head", [True, False], ids=["head sent", "head tied and left out"])
def test_new_weights_are_used_from_the_next_request_on(
    server: Any, random_model: Callable[..., Any], with_head: bool, saved_policy: Path
) -> None:
    from envace.training.cpu_backend.rollout_server import CpuServer

    old = generate(server)
    new = weights_of(random_model(1))
    if not with_head:
        new.pop("lm_head.weight", None)
    asyncio.run(server.load_weights(new, 4))
    output = generate(server)
    assert output.token_ids != old.token_ids and output.extra_fields["global_steps"] == 4
    fresh = CpuServer(str(saved_policy), 200)
    asyncio.run(fresh.load_weights(new, None))
    assert generate(fresh).token_ids == output.token_ids


def test_weights_with_unknown_or_missing_names_are_refused_and_change_nothing(
    server: Any, random_model: Callable[..., Any]
) -> None:
    old, new = generate(server), weights_of(random_model(1))
    with pytest.raises(EngineError, match=r"does not have.*model\.extra"):
        asyncio.run(server.load_weights(new | {"model.extra": torch.zeros(1)}, 1))
    new.pop("model.norm.weight")
    with pytest.raises(EngineError, match=r"no weights for.*model\.norm\.weight"):
        asyncio.run(server.load_weights(new, 1))
    assert generate(server, "again").token_ids == old.token_ids


def test_weights_that_are_not_finite_show_in_the_log_probabilities(server: Any) -> None:
    """They are what a training is stopped by."""
    broken = {n: torch.full_like(w, float("nan")) for n, w in weights_of(server._engine.model).items()}
    asyncio.run(server.load_weights(broken, 2))
    output = generate(server)
    assert output.token_ids and not any(map(math.isfinite, output.log_probs))


def test_pictures_are_refused(server: Any) -> None:
    with pytest.raises(EngineError, match="text only"):
        asyncio.run(server.generate([5], SAMPLING, "s", image_data=[object()]))
