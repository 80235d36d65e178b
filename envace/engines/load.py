"""Opens a Hugging Face folder as an engine and a layout: local files only, safetensors only, no remote code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from envace.chat.layout import ChatLayout
from envace.engines.cpu import CpuEngine
from envace.errors import EngineError


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A policy ready to generate on the CPU."""

    engine: CpuEngine
    layout: ChatLayout


def load_policy(folder: Path, *, max_slots: int, max_length: int) -> LoadedPolicy:
    """Load the policy in `folder`. Raises EngineError naming the folder where it cannot be loaded."""
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if not (folder / "config.json").is_file():
        raise EngineError(f"{folder}: no config.json, so this is not a Hugging Face model folder")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        model = AutoModelForCausalLM.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
            attn_implementation="sdpa",
        )
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise EngineError(f"{folder}: cannot be loaded: {' '.join(str(error).split())[:300]}") from error
    engine = CpuEngine(model.eval(), max_slots=max_slots, max_length=max_length)
    return LoadedPolicy(engine, ChatLayout(tokenizer))
