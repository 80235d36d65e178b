"""What a Hugging Face model folder must hold to be trained on, found without loading any weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

from envace.chat.layout import ChatLayout
from envace.config import RolloutParams
from envace.errors import CheckpointError, EngineError
from envace.files import read_json

_MAX_HEADER_BYTES = 100 << 20  # safetensors' own limit


def parameter_count(folder: Path) -> int:
    """Parameters of the model, from the headers of its safetensors files. Raises CheckpointError."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise CheckpointError(f"{folder}: no .safetensors file; convert the checkpoint, pickled weights are not loaded")
    return sum(prod(entry["shape"]) for path in files for entry in _header(path).values())


def model_faults(folder: Path, rollout: RolloutParams) -> Iterator[str]:
    """Everything that keeps the model from being trained with these rollouts, one text a fault."""
    config = _config(folder)
    if config is None:
        yield f"{folder}: no readable config.json, so this is not a Hugging Face model folder"
        return
    try:
        parameter_count(folder)
    except CheckpointError as error:
        yield str(error)
    yield from _context_faults(folder, config, rollout)
    yield from _tokenizer_faults(folder, rollout)


def _context_faults(folder: Path, config: dict[str, Any], rollout: RolloutParams) -> Iterator[str]:
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int):
        yield f"{folder}/config.json states no max_position_embeddings, the longest context of the model"
        return
    output = max(rollout.max_act_tokens, rollout.max_rehearse_tokens)
    longest = rollout.max_prompt_tokens + output
    if longest > positions:
        yield (
            f"a prompt of rollout.max_prompt_tokens {rollout.max_prompt_tokens} and an output of {output} tokens make "
            f"{longest}, more than the {positions} that the model {folder} can take; lower them"
        )


def _tokenizer_faults(folder: Path, rollout: RolloutParams) -> Iterator[str]:
    if not (folder / "tokenizer.json").is_file():
        yield f"{folder}: no tokenizer.json; copy the model's tokenizer into the folder (a fast one is needed)"
        return
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # the tokenizers library raises bare exceptions
        yield f"{folder}: its tokenizer cannot be loaded: {' '.join(str(error).split())[:300]}"
        return
    if tokenizer.chat_template is None:
        yield f"{folder}: its tokenizer has no chat template; take an instruction-tuned model, or add one"
        return
    try:
        ChatLayout(tokenizer).require(rollout.role_prompts)
    except EngineError as error:
        yield f"{folder}: {error}"


def _config(folder: Path) -> dict[str, Any] | None:
    try:
        config = read_json(folder / "config.json")
    except (OSError, ValueError):
        return None
    return config if isinstance(config, dict) else None


def _header(path: Path) -> dict[str, Any]:
    """Name to dtype, shape and place of every tensor in a safetensors file."""
    try:
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if length > min(_MAX_HEADER_BYTES, path.stat().st_size):
                raise ValueError("its header is longer than the file")
            header = json.loads(stream.read(length))
        return {name: entry for name, entry in header.items() if name != "__metadata__" and entry["shape"] is not None}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path}: not a whole safetensors file ({error}); fetch it again") from None
