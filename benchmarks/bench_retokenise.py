"""B3: tokens in, tokens out against rendering and encoding the whole conversation at every output.

Ours is the project's whole loop around an engine that costs nothing: parsing, checks, splicing of token ids. The peer
is what text-based harnesses do: before each output the messages so far go through the chat template and the tokenizer,
and the output is decoded. Both get the same conversations; 64 turns end near 12,000 tokens, the method's limit of a
prompt. What grows linearly with the turns has t(64)/t(8) = 8.

Run: OMP_NUM_THREADS=1 python benchmarks/bench_retokenise.py
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass
from typing import Any

from played import known_call, sample_tasks, shipped_params, small_policy

from envace.chat.layout import ChatLayout
from envace.engines.protocol import Generation, GenerationRequest
from envace.rollout.loop import RolloutSettings, unfold
from envace.types import Outcome, Role, Rollout, Task, TurnOutcome

GOAL = 10.0
REPLY = "Here is what I found for you: "


@dataclass(slots=True)
class Work:
    """Seconds, and the tokens that went through the tokenizer's encoder."""

    seconds: float
    encoded: int


class CountingTokenizer:
    """A tokenizer that counts what it encodes. Everything else is the tokenizer's own."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.encoded = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def encode(self, text: str, **options: Any) -> list[int]:
        ids = self._tokenizer.encode(text, **options)
        self.encoded += len(ids)
        return ids


class Prepared:
    """An engine that costs nothing: the ids of each output are ready."""

    def __init__(self, outputs: list[list[int]]) -> None:
        self._outputs, self._next = outputs, 0

    async def generate(self, request: GenerationRequest) -> Generation:
        ids = self._outputs[self._next]
        self._next += 1
        return Generation(ids, [0.0] * len(ids))


def main() -> None:
    options = arguments()
    params, policy = shipped_params(), small_policy(32, 1, 65_536)
    (base,) = sample_tasks(1)
    work: dict[tuple[str, int], Work] = {}
    for turns in (options.few, options.many):
        task = conversation(base, turns)
        script = [known_call(base, 0), f'{{"result": "{REPLY * options.words}"}}', REPLY * options.words] * turns
        outputs = [policy.layout.encode_output(text) for text in script]
        for _ in range(options.tries):
            for side, run in (("ours", ours), ("peer", peer)):
                done = run(policy.tokenizer, task, outputs, params)
                known = work.setdefault((side, turns), done)
                known.seconds = min(known.seconds, done.seconds)
    print(f"{'':6}{'turns':>7}{'ms':>10}{'ms a turn':>11}{'tokens encoded':>16}")
    for (side, turns), done in sorted(work.items()):
        print(f"{side:6}{turns:7}{1e3 * done.seconds:10.1f}{1e3 * done.seconds / turns:11.2f}{done.encoded:16}")
    for side in ("peer", "ours"):
        many, few = work[side, options.many], work[side, options.few]
        goal = f" (goal <= {GOAL:.0f})" if side == "ours" else ""
        print(
            f"{side}: t({options.many})/t({options.few}) {many.seconds / few.seconds:.1f}{goal}, "
            f"tokens encoded {many.encoded / few.encoded:.1f}"
        )


def conversation(base: Task, turns: int) -> Task:
    """A task of so many turns with the tools of another."""
    said = [base.turns[0].model_copy(update={"turn_index": i}) for i in range(turns)]
    nothing = TurnOutcome(required_calls=[], required_facts=[])
    return base.model_copy(update={"turns": said, "outcome": Outcome(turns=[nothing] * turns)})


def ours(tokenizer: Any, task: Task, outputs: list[list[int]], params: Any) -> Work:
    """The project's loop."""
    counting = CountingTokenizer(tokenizer)
    layout, before = ChatLayout(counting), counting.encoded
    settings = RolloutSettings(params.rollout, params.reward, 0)

    async def run() -> tuple[Rollout, float]:
        start = time.perf_counter()
        made = await unfold(task, 0, engine=Prepared(outputs), layout=layout, settings=settings)
        return made, time.perf_counter() - start

    # timed inside: what asyncio.run does with a large result afterwards is not the loop's
    rollout, seconds = asyncio.run(run())
    assert len(rollout.outputs) == len(outputs) and rollout.count(Role.REHEARSE) == len(task.turns), rollout.error
    return Work(seconds, counting.encoded - before)


def peer(tokenizer: Any, task: Task, outputs: list[list[int]], params: Any) -> Work:
    """Text in, text out: every prompt is rendered and encoded as a whole."""
    counting = CountingTokenizer(tokenizer)
    tools = [tool.openai() for tool in task.tools]
    messages: list[dict[str, Any]] = []
    start = time.perf_counter()
    for index, ids in enumerate(outputs):
        if index % 3 == 0:
            messages.append({"role": "user", "content": task.turns[index // 3].user_message})
        text = counting.apply_chat_template(messages, tools=tools, add_generation_prompt=True, tokenize=False)
        counting.encode(text, add_special_tokens=False)
        written = counting.decode(ids[:-1], skip_special_tokens=False)
        messages.append({"role": "tool" if index % 3 == 1 else "assistant", "content": written})
    return Work(time.perf_counter() - start, counting.encoded)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--few", type=int, default=8, help="turns of the short conversation")
    parser.add_argument("--many", type=int, default=64, help="turns of the long conversation")
    parser.add_argument("--words", type=int, default=4, help="times a phrase of 7 words stands in a text")
    parser.add_argument("--tries", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
