"""Which files of a Hugging Face checkpoint are taken: configuration, tokenizer, safetensors; nothing that runs code."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from envace.errors import CheckpointError
from envace.files import read_json

ALLOWED = (
    *("config.json", "generation_config.json"),
    *("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.json", "merges.txt", "chat_template.jinja", "chat_template.json"),
    *("*.safetensors", "*.safetensors.index.json"),
)


def allowed(names: Iterable[str]) -> list[str]:
    """Those of the names that are taken, sorted; only files that lie directly in the checkpoint's folder."""
    return sorted(n for n in names if "/" not in n and any(fnmatchcase(n, pattern) for pattern in ALLOWED))


def require_whole(names: Iterable[str], place: str) -> None:
    """Raise CheckpointError where the file names cannot make a checkpoint. `place` is what messages call it."""
    names = set(names)
    if "config.json" not in names:
        raise CheckpointError(f"{place}: no config.json, so this is not a Hugging Face model")
    if not any(name.endswith(".safetensors") for name in names):
        raise CheckpointError(f"{place}: no .safetensors file; convert the checkpoint, pickled weights are not loaded")


def require_usable(folder: Path, place: str) -> None:
    """Raise CheckpointError where a copied checkpoint lacks a part of its weights, its tokenizer or a chat template.

    Raises EngineError where the chat template cannot be used (envace.chat.layout).
    """
    from transformers import AutoTokenizer

    from envace.chat.layout import ChatLayout

    for index in folder.glob("*.safetensors.index.json"):
        missing = sorted({part for part in _parts(index, place) if not (folder / part).is_file()})
        if missing:
            raise CheckpointError(f"{place}: {index.name} names {missing[0]!a}, which is not there")
    if not (folder / "tokenizer.json").is_file():
        raise CheckpointError(f"{place}: no tokenizer.json; a fast tokenizer is needed beside the weights")
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if tokenizer.chat_template is None:
        raise CheckpointError(f"{place}: no chat template; take an instruction-tuned model, or add chat_template.jinja")
    ChatLayout(tokenizer)


def _parts(index: Path, place: str) -> list[Any]:
    try:
        return [str(part) for part in read_json(index)["weight_map"].values()]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CheckpointError(f"{place}: {index.name} is no index of weights; fetch it again") from None
