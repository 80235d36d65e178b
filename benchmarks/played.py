"""What the rollout benchmarks share: a small random Qwen3, scripts with the lengths of real rollouts, and their player.

A policy of random weights would write nothing that can be parsed. So the engine really computes as many tokens as the
script's text has, and the text then takes the place of what was sampled: the work is real, the words are given.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from envace.chat.layout import ChatLayout, render_calls
from envace.config import ArchitectureParams, Params, load_params
from envace.data.canonical import to_task
from envace.data.sample import build_world, generate_conversations, generate_demonstrations, to_raw_record
from envace.engines.protocol import Generation, GenerationRequest, TokenEngine
from envace.files import compact_json
from envace.training.base_model.model import build_model
from envace.training.base_model.tokenizer import build_tokenizer
from envace.types import Task, ToolCall

Scripts = dict[str, list[str]]  # the texts of each session, in order


@dataclass(frozen=True, slots=True)
class SmallPolicy:
    """A random Qwen3 that never ends an output by itself, and the layout of its tokenizer."""

    model: Any
    tokenizer: Any
    layout: ChatLayout


def shipped_params() -> Params:
    """The parameters of the project, with room for the benchmark's texts."""
    params = load_params(Path(__file__).resolve().parents[1] / "params.yaml")
    room = {"max_prompt_tokens": 100_000, "max_act_tokens": 1024, "max_rehearse_tokens": 1024, "max_outputs": 100_000}
    return params.model_copy(update={"rollout": params.rollout.model_copy(update=room)})


def small_policy(hidden: int, layers: int, positions: int) -> SmallPolicy:
    """Build it. Its end token lies outside the vocabulary, so every output has exactly `max_tokens` tokens."""
    tokenizer = build_tokenizer(generate_demonstrations(build_world(0), 200, 0), 1024, positions)
    architecture = ArchitectureParams(
        hidden_size=hidden,
        layers=layers,
        intermediate_size=2 * hidden,
        heads=4,
        kv_heads=2,
        head_dim=hidden // 4,
        vocabulary=1024,
        max_positions=positions,
    )
    model = build_model(tokenizer, architecture, 0).eval()
    model.generation_config.eos_token_id = len(tokenizer)
    return SmallPolicy(model, tokenizer, ChatLayout(tokenizer))


def sample_tasks(count: int) -> list[Task]:
    """The first tasks of the generated sample."""
    world = build_world(0)
    made = generate_conversations(world, count, 0, "train")
    return [to_task(to_raw_record(world, c), "train", [], "sample") for c in made]


def varied_script(task: Task, rng: random.Random, typical: int, longest: int) -> list[str]:
    """Texts that play `task` to its end: 1 to 6 rehearsed calls a turn, each output a log-normal number of words.

    `typical` is the median, the standard deviation of the logarithm is 1 (so one output in ten is 3.6 times the median
    or longer), and `longest` cuts the tail, as a limit on output tokens does.
    """

    def words() -> str:
        return " ".join(["the"] * max(1, min(longest, round(rng.lognormvariate(0, 1) * typical))))

    texts: list[str] = []
    for turn in task.turns:
        for _ in range(1 + min(5, int(rng.expovariate(0.6)))):
            texts += [f"<think>{words()}</think>{known_call(task, turn.turn_index)}", f'{{"result": "{words()}"}}']
        texts.append(words())
    return texts


def known_call(task: Task, turn_index: int) -> str:
    """A call that validation lets pass, as the policy writes it: one of the reference's, or one with dummy values."""
    for turn in (task.turns[turn_index], *task.turns):
        for step in turn.reference_steps:
            if step.tool_calls:
                return render_calls(step.tool_calls[:1])
    values = {"string": "x", "integer": 1, "number": 1.0, "boolean": True}
    tool = task.tools[0].openai()["function"]
    arguments = {name: values.get(s["type"], "x") for name, s in tool["parameters"]["properties"].items()}
    return render_calls([ToolCall(tool_name=tool["name"], arguments=compact_json(arguments))])


class PlayedEngine:
    """Lets `inner` compute each output token by token, then puts the script's text in its place."""

    def __init__(self, inner: TokenEngine, layout: ChatLayout, scripts: Scripts) -> None:
        self._inner = inner
        self._ids = {s: [layout.encode_output(t) for t in texts] for s, texts in scripts.items()}
        self._next = dict.fromkeys(scripts, 0)
        self.computed: dict[tuple[str, int], Sequence[float]] = {}

    async def generate(self, request: GenerationRequest) -> Generation:
        index = self._next[request.session]
        self._next[request.session] = index + 1
        ids = self._ids[request.session][index]
        made = await self._inner.generate(replace(request, max_tokens=len(ids)))
        assert len(made.token_ids) == len(ids)
        self.computed[request.session, index] = made.log_probs
        return Generation(ids, made.log_probs)


def largest_difference(one: PlayedEngine, other: PlayedEngine) -> float:
    """Between the log-probabilities that two engines computed for the same requests: evidence of equal work."""
    assert one.computed.keys() == other.computed.keys()
    pairs = ((a, b) for key, made in one.computed.items() for a, b in zip(made, other.computed[key], strict=True))
    return max(abs(a - b) for a, b in pairs)
