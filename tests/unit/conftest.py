"""What the tests of the method share: sample tasks, the tiny tokenizer's chat layout, and a small random policy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envace.chat.layout import ChatLayout
from envace.config import ArchitectureParams
from envace.data.canonical import to_task
from envace.data.sample import Demonstration, build_world, generate_conversations, generate_demonstrations
from envace.data.sample import to_raw_record as raw_record
from envace.types import Outcome, Task, ToolCall, ToolSpec, Turn, TurnOutcome

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}


@pytest.fixture(scope="session")
def sample_tasks() -> list[Task]:
    """300 generated tasks of the training partition, with outcomes and their executable world."""
    world = build_world(0)
    conversations = generate_conversations(world, 300, 0, "train")
    return [to_task(raw_record(world, c), "train", [], "sample") for c in conversations]


@pytest.fixture(scope="session")
def demonstrations() -> list[Demonstration]:
    """A few dozen clean demonstrations."""
    return generate_demonstrations(build_world(0), 60, 0)


@pytest.fixture(scope="session")
def tokenizer(demonstrations: list[Demonstration]) -> Any:
    """The tiny policy's tokenizer, learned on the demonstrations."""
    from envace.training.base_model.tokenizer import build_tokenizer

    return build_tokenizer(demonstrations, 600, 2048)


@pytest.fixture(scope="session")
def layout(tokenizer: Any) -> ChatLayout:
    """The chat layout of that tokenizer."""
    return ChatLayout(tokenizer)


@pytest.fixture(scope="session")
def qwen_tokenizer(demonstrations: list[Demonstration]) -> Any:
    """A tokenizer that splits text as Qwen's does, learned on the sample, with a template that behaves as Qwen3's."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    words = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(words), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    tags = [f"<{slash}{name}>" for name in ("think", "tool_call", "tool_response") for slash in ("", "/")]
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>", *tags],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    texts = [f"{turn.reply}\n\n{results}\n" for d in demonstrations for turn in d.act for results in turn.steps]
    bpe.train_from_iterator(texts, trainer)
    fast: Any = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    fast.chat_template = Path(__file__).with_name("qwen_like.jinja").read_text(encoding="utf-8")
    return fast


@pytest.fixture(scope="session")
def qwen_layout(qwen_tokenizer: Any) -> ChatLayout:
    """The chat layout of that tokenizer."""
    return ChatLayout(qwen_tokenizer)


@pytest.fixture(scope="session")
def random_model(tokenizer: Any) -> Callable[..., Any]:
    """Makes a Qwen3 of random weights for that tokenizer; the same seed gives the same weights."""
    from envace.training.base_model.model import build_model

    architecture = ArchitectureParams(
        hidden_size=32,
        layers=2,
        intermediate_size=64,
        heads=4,
        kv_heads=2,
        head_dim=16,
        vocabulary=600,
        max_positions=2048,
    )

    def make(seed: int = 0) -> Any:
        return build_model(tokenizer, architecture, seed).eval()

    return make


@pytest.fixture(scope="session")
def saved_policy(random_model: Callable[..., Any], tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That model as a Hugging Face folder. Copy it to spoil it."""
    from envace.training.base_model.build import save_policy

    folder = tmp_path_factory.mktemp("saved") / "policy"
    save_policy(random_model(), tokenizer, folder)
    return folder


@pytest.fixture(scope="session")
def make_task() -> Callable[..., Task]:
    """Makes a task of the given turns, each (user message, required calls, required facts), with two weather tools."""

    def make(*turns: tuple[str, list[tuple[str, dict[str, Any]]], list[str]], task_id: str = "t0") -> Task:
        outcomes = [
            TurnOutcome(
                required_calls=[ToolCall(tool_name=n, arguments=json.dumps(a)) for n, a in calls],
                forbidden_tools=["get_alert"],
                required_facts=facts,
            )
            for _, calls, facts in turns
        ]
        tools = [
            ToolSpec(name=name, description="", parameters_schema=json.dumps(WEATHER), schema_sha256="")
            for name in ("get_weather", "get_alert")
        ]
        said = [Turn(turn_index=i, user_message=t[0], reference_steps=[]) for i, t in enumerate(turns)]
        return Task(
            task_id=task_id,
            content_sha256=task_id,
            split="train",
            system_prompt=None,
            tools=tools,
            turns=said,
            rubrics=[],
            outcome=Outcome(turns=outcomes),
            world=None,
            flags=[],
            provenance="made by hand",
        )

    return make
