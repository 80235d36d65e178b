"""B11: the generation phase of a whole training step against the bare engine at the same batch, in tokens a second.

Ours, timed: for each task × rollout, verl's agent-loop object as verl makes it, and `EnvaceAgentLoop.run` to its rows:
prompts spliced, acts parsed, calls validated by code, rehearsals checked, rewards by code, the record as JSON, one
AgentLoopOutput an output, over the rollout server's own class (`CpuServer`: 128 slots, prefixes kept).
Outside: Ray's calls and TransferQueue, the update, the weights' way to the server.

Bare, timed: the same engine class on the same weights, no loop around it, as many slots as there are rollouts, as many
tokens sampled as in ours; ends are switched off, so the counts are exact. Three kinds of it:
- chained: the same prompts and counts; each rollout's next request goes out when the one before is answered. Every
  decode step then has the batch that it has in ours: what is missing is the loop, and the goal is held against it
- queued: the same prompts and counts, all handed over at the start: a fuller batch, that of requests that do not wait
  for each other's answers
- even: only each rollout's first prompt, and the step's tokens dealt out evenly: no slot is ever empty, nothing more to
  prefill. No step of several turns can reach it; it shows the engine's top speed

Run: OMP_NUM_THREADS=1 python benchmarks/bench_rollout_step.py [--model models/base]
"""

from __future__ import annotations

import argparse
import asyncio
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tiny_step import TinyStep, step_arguments, tiny_step

from envace.engines.cpu import CpuEngine, EngineStats
from envace.engines.load import load_policy
from envace.engines.protocol import GenerationRequest

GOAL = 0.8
Requests = dict[str, list[GenerationRequest]]  # of each rollout, in order


@dataclass
class Servers:
    """What verl's server client is to an agent loop: the CPU rollout server, called in this process."""

    server: Any
    texts: dict[str, list[list[int]]] | None
    sent: Requests = field(default_factory=lambda: defaultdict(list))

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Any:
        """Sample; with texts, compute as many tokens as the next one has, and put it in their place."""
        said = self.texts[request_id][len(self.sent[request_id])] if self.texts else None
        asked = sampling_params | ({"max_tokens": len(said)} if said else {})
        request = GenerationRequest(
            request_id, prompt_ids, asked["max_tokens"], asked["temperature"], asked["top_p"], asked["seed"]
        )
        self.sent[request_id].append(request)
        place = len(self.sent[request_id]) - 1
        output = await self.server.generate(prompt_ids, asked, request_id)
        self.sent[request_id][place] = replace(request, max_tokens=len(output.token_ids))
        output.token_ids = said or output.token_ids
        output.extra_fields |= {"min_global_steps": 1, "max_global_steps": 1}
        return output


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    step_arguments(parser)
    options = parser.parse_args()
    with warnings.catch_warnings(action="ignore"), tiny_step(options) as step:  # verl's, about other engines
        from envace.training.cpu_backend.rollout_server import CpuServer

        server: Any = CpuServer(str(step.folder), step.max_length)
        engine, layout = server._engine, load_policy(step.folder, max_slots=1, max_length=16).layout
        texts = {s: [layout.encode_output(t) for t in said] for s, said in (step.scripts or {}).items()}
        run_step, servers = whole_step(step, server, texts or None)
        rows = asyncio.run(run_step())  # also tells what to send to the bare engines
        requests = dict(servers.sent)
        tokens = sum(r.max_tokens for sent in requests.values() for r in sent)
        level = even(requests, tokens)
        chained, queued, top = (bare_engine(step.folder, asked) for asked in (requests, requests, level))
        sides = {
            "whole step": Side(run_step, engine),
            "bare, chained": Side(lambda: send(chained, requests, True), chained),
            "bare, queued": Side(lambda: send(queued, requests, False), queued),
            "bare, even": Side(lambda: send(top, level, False), top),
        }
        for _ in range(options.tries):
            for side in sides.values():
                side.once()
    print(
        f"{len(requests)} rollouts of {len(step.tasks)} tasks, {len(rows)} outputs, {tokens} tokens sampled, "
        f"{engine.stats.prompt_tokens} tokens of prompts; policy: {options.model or 'random, playing scripts'}"
    )
    print(f"{'':16}{'wall s':>8}{'cpu s':>7}{'tokens/s':>10}{'decode steps':>14}{'rows a step':>13}{'prefilled':>11}")
    for name, side in sides.items():
        stats = side.engine.stats
        assert stats.sampled_tokens == tokens, f"{name}: {stats.sampled_tokens} tokens instead of {tokens}"
        print(
            f"{name:16}{side.seconds:8.2f}{side.cpu:7.2f}{tokens / side.seconds:10.0f}{stats.decode_steps:14}", end=""
        )
        print(f"{stats.slot_steps / stats.decode_steps:13.1f}{stats.prefilled_tokens:11}")
    ratios = {name: side.seconds / sides["whole step"].seconds for name, side in sides.items()}
    print(f"tokens/s of the step / of the bare engine, fuller batches: {ratios['bare, queued']:.2f} queued, ", end="")
    print(f"{ratios['bare, even']:.2f} even")
    print(f"the same batch, by processor time: {sides['bare, chained'].cpu / sides['whole step'].cpu:.2f}")
    print(f"tokens/s of the step / of the bare engine, same batch: {ratios['bare, chained']:.2f} (goal >= {GOAL})")


@dataclass
class Side:
    """One way to generate, its engine, and the shortest of its runs in seconds, by the clock and of processor time."""

    run: Callable[[], Coroutine[Any, Any, Any]]
    engine: CpuEngine
    seconds: float = float("inf")
    cpu: float = float("inf")

    def once(self) -> None:
        """Run it from an empty cache; the engine's counters are then those of this run."""
        self.engine.forget()
        self.engine.stats = EngineStats()
        start, worked = time.perf_counter(), time.process_time()
        asyncio.run(self.run())
        self.seconds = min(self.seconds, time.perf_counter() - start)
        self.cpu = min(self.cpu, time.process_time() - worked)


def whole_step(step: TinyStep, server: Any, texts: dict[str, list[list[int]]] | None) -> tuple[Any, Servers]:
    """What runs the step once and returns its rows, and the record of what the last run sent."""
    from transformers import AutoTokenizer
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap
    from verl.utils.dataset.rl_dataset import RLHFDataset

    from envace.training.agent_loop import EnvaceAgentLoop
    from envace.training.overrides import RunPaths, compose, verl_overrides
    from envace.training.settings import run_settings

    nowhere = Path("/nowhere")
    paths = RunPaths(step.folder.resolve(), *(nowhere / n for n in ("train", "validation", "settings", "kept", "ray")))
    config = compose(verl_overrides(step.params, paths, None))
    tokenizer = AutoTokenizer.from_pretrained(step.folder, local_files_only=True)
    settings = run_settings(step.params, nowhere).model_dump_json()
    texts_of_tasks = [task.model_dump_json() for task in step.tasks]  # as verl's data set holds them
    servers = Servers(server, texts)

    async def rollout(index: int, k: int, text: str) -> list[Any]:
        loop = EnvaceAgentLoop(
            trainer_config=DictConfigWrap(config),
            server_manager=servers,  # type: ignore[arg-type]
            tokenizer=tokenizer,
            processor=None,  # type: ignore[arg-type]
            dataset_cls=RLHFDataset,
            data_config=DictConfigWrap(config.data),
            hf_model_type="qwen3",
            settings=settings,
        )
        info = {"index": index, "phase": "train", "task": text}
        return await loop.run({}, extra_info=info, global_steps=1, session_id=k)

    async def run() -> list[Any]:
        servers.sent.clear()
        rows = await asyncio.gather(
            *(rollout(i, k, text) for i, text in enumerate(texts_of_tasks) for k in range(step.repeats))
        )
        return [row for made in rows for row in made]

    return run, servers


def bare_engine(folder: Path, requests: Requests) -> CpuEngine:
    """The engine on the same weights, with a slot a rollout and an end token that no vocabulary has."""
    longest = max(len(r.prompt_ids) + r.max_tokens for sent in requests.values() for r in sent)
    model = load_policy(folder, max_slots=1, max_length=16).engine.model
    model.generation_config.eos_token_id = model.config.vocab_size
    return CpuEngine(model, max_slots=len(requests), max_length=longest)


async def send(engine: CpuEngine, requests: Requests, chained: bool) -> None:
    """Send all requests at once, or each rollout's one after the other."""

    async def chain(sent: list[GenerationRequest]) -> None:
        for request in sent:
            await engine.generate(request)

    if chained:
        await asyncio.gather(*(chain(sent) for sent in requests.values()))
    else:
        longest = max(map(len, requests.values()))  # in the order of the loop: all first outputs, all second ones, ...
        turns = [sent[i] for i in range(longest) for sent in requests.values() if i < len(sent)]
        await asyncio.gather(*(engine.generate(request) for request in turns))


def even(requests: Requests, tokens: int) -> Requests:
    """Each rollout's first prompt, with the step's tokens dealt out evenly."""
    share, more = divmod(tokens, len(requests))
    return {s: [replace(sent[0], max_tokens=share + (i < more))] for i, (s, sent) in enumerate(requests.items())}


if __name__ == "__main__":
    main()
