"""TRL's side of bench_vs_trl.py, in TRL's venv: GRPOTrainer with the tasks' tools. Arguments: model, scratch folder."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import httpx
import torch
from datasets import Dataset
from our_side import rates
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_schema

from envace.config import Params, parse_params
from envace.data.sample.catalogue import CATALOGUE
from envace.files import compact_json, read_json, write_json
from envace.rewards.outcome import score_turn
from envace.types import Task, ToolCall

Message = dict[str, Any]


def python_tool(name: str, server: httpx.Client) -> Callable[..., str]:
    """A tool of the sample as TRL takes one: a function whose signature and docstring say what its schema says.

    The server answers; it is asked as method grpo asks a simulator.
    """
    spec, kinds = CATALOGUE[name], {"string": str, "integer": int}

    def call(**arguments: Any) -> str:
        written = compact_json({"name": name, "arguments": arguments})
        messages = [
            {"role": "assistant", "content": f"<tool_call>{written}</tool_call>"},
            {"role": "user", "content": "Answer call 1 of the 1 in the last assistant message."},
        ]
        answer = server.post("chat/completions", json={"model": "world", "messages": messages}).raise_for_status()
        return answer.json()["choices"][0]["message"]["content"]

    hints = {key: kinds[kind] for key, kind in spec.parameters.items()}
    parameters = [Parameter(key, Parameter.KEYWORD_ONLY, annotation=hint) for key, hint in hints.items()]
    call.__name__, call.__annotations__ = name, hints
    call.__doc__ = "\n".join([spec.description, "", "Args:", *(f"    {key}: the {key}" for key in hints)])
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return call


class Clock(TrainerCallback):
    """Seconds of each step: generation, rewards and update."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._start = 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._start = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.seconds.append(time.perf_counter() - self._start)


class WatchedTrainer(GRPOTrainer):
    """GRPOTrainer that notes how long each generation took and what it gave; its work is unchanged."""

    def __init__(self, *args: Any, prompt_ids: list[list[int]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._known = set(map(tuple, prompt_ids))
        self.generation_s: list[float] = []
        self.tokens: list[list[int]] = []  # that the policy wrote, of each rollout of each step
        self.completions: list[list[list[Message]]] = []

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        made = super()._generate(*args, **kwargs)
        self.generation_s.append(time.perf_counter() - start)
        prompts, _, masks, completions = made[:4]
        assert all(tuple(p) in self._known for p in prompts), "TRL's prompts are not ours, token by token"
        self.tokens.append([sum(mask) for mask in masks])
        self.completions.append(completions)
        return made


def main() -> None:
    folder, scratch = map(Path, sys.argv[1:])
    torch.set_num_threads(1)
    work = read_json(scratch / "work.json")
    params, tasks = parse_params(work["params"], "work.json"), [Task.model_validate(t) for t in work["tasks"]]
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    tokenizer.response_schema = qwen3_schema  # how TRL reads calls; it knows no template but published ones
    model = AutoModelForCausalLM.from_pretrained(
        folder, local_files_only=True, dtype=torch.float32, attn_implementation="sdpa"
    )
    rewards: list[float] = []

    def reward(completions: list[list[Message]], task: list[int], **kwargs: Any) -> list[float]:
        given = [score(tasks[t], messages, params) for t, messages in zip(task, completions, strict=True)]
        rewards.extend(given)
        return given

    rows = [{"prompt": [{"role": "user", "content": t.turns[0].user_message}], "task": i} for i, t in enumerate(tasks)]
    clock, server = Clock(), httpx.Client(base_url=work["tools_at"])
    trainer = WatchedTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=reward,
        train_dataset=Dataset.from_list(rows),
        tools=[python_tool(tool.name, server) for tool in tasks[0].tools],
        args=config(params, scratch, work["continuous_batching"]),
        callbacks=[clock],
        prompt_ids=work["prompt_ids"],
    )
    trainer.train()
    size = params.train_policy.tasks_per_step * params.train_policy.rollouts_per_task
    messages = [m for step in trainer.completions[1:] for m in step]
    figures = rates(
        clock.seconds[1:],
        trainer.generation_s[1:],
        outputs=[sum(m["role"] == "assistant" for m in made) for made in messages],
        tokens=[n for step in trainer.tokens[1:] for n in step],
        calls=[sum(m["role"] == "tool" for m in made) for made in messages],
        rewards=rewards[size:],
    )
    assert len(messages) == size * (params.train_policy.steps - 1)
    write_json(scratch / "figures.json", figures)


def config(params: Params, scratch: Path, continuous_batching: bool) -> GRPOConfig:
    """The recipe of `params` in TRL's words."""
    train, rollout = params.train_policy, params.rollout
    size = train.tasks_per_step * train.rollouts_per_task
    micro = min(train.micro_batch_rows, size)
    return GRPOConfig(
        output_dir=str(scratch / "trl"),
        use_cpu=True,
        bf16=False,
        max_steps=train.steps,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=size // micro,
        num_generations=train.rollouts_per_task,
        max_completion_length=rollout.max_act_tokens,
        max_tool_calling_iterations=rollout.max_outputs - 1,
        temperature=rollout.act.temperature,
        top_p=rollout.act.top_p,
        top_k=0,
        use_transformers_continuous_batching=continuous_batching,
        learning_rate=train.learning_rate,
        lr_scheduler_type="constant",
        warmup_steps=0,
        weight_decay=train.weight_decay,
        max_grad_norm=train.grad_clip,
        optim="adamw_torch",
        beta=0.0,
        epsilon=train.clip_ratio,
        loss_type="grpo",
        scale_rewards="none",
        gradient_checkpointing=False,
        seed=train.seed,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
    )


def score(task: Task, messages: list[Message], params: Params) -> float:
    """The project's own reward, by code."""
    assert task.outcome is not None
    calls = [
        ToolCall(tool_name=c["function"]["name"], arguments=compact_json(c["function"]["arguments"]))
        for m in messages
        for c in m.get("tool_calls") or []
    ]
    last = messages[-1]
    reply = last["content"] if last["role"] == "assistant" and not last.get("tool_calls") else None
    return score_turn(task.outcome.turns[0], calls, reply, params.reward.weights).score


if __name__ == "__main__":
    main()
