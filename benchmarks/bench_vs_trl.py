"""B7: rollouts a second of our CPU training against TRL's GRPOTrainer with tools, whole training steps.

Both train the same policy on the same tasks (one user message; --work says what it needs) and are timed by the step,
the first one left out. TRL lives in a venv of its own (`.envace/venvs/trl`, made on the first run: 1.2 GB).

Two sides of ours: `ours` trains method grpo, whose calls a server answers, so that both sides have the same work;
`rehearsing` is the method itself, which also writes what the tool answers and trains on it.

Equal (ours, TRL): weights, tokenizer, prompts (compared id by id), the tools and who runs them (one server on loopback,
asked in the words in which method grpo asks a simulator), the reward in code, tasks, rollouts a step, one training row
a rollout, rows of a micro-batch, most act outputs a rollout, temperature 1, fp32, one thread for the tensor work, one
update a step with the same learning rate, AdamW, clipping and no KL; the versions of torch and transformers.

Not equal, and in whose favour:
- ours runs on Ray (server, trainer and storage in processes of their own, which may use a second core for their
  bookkeeping), TRL in one process: ours, where there is a core to spare
- TRL's token limit holds for the whole rollout, results included, ours for each output: whichever ends earlier
- each draws its own tasks' order and samples, so the rollouts differ; their mean sizes are printed
Outside on both sides: start-up, checkpoints, validation.

Run: OMP_NUM_THREADS=1 python benchmarks/bench_vs_trl.py --model models/base
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from keyword import iskeyword
from pathlib import Path

from trl_venv import trl_python

from envace.chat.layout import ChatLayout
from envace.config import Params, load_params, parse_params
from envace.data.canonical import to_task
from envace.data.sample import build_world, to_raw_record
from envace.data.sample.catalogue import CATALOGUE
from envace.data.sample.conversations import draw_conversations
from envace.experiment.merging import SIMULATOR_MODEL, with_changes
from envace.experiment.simulator import world_simulator
from envace.files import read_json, write_json
from envace.types import Task

GOAL = 1.3
ROOT = Path(__file__).resolve().parents[1]
ORDERS = ("cancel_order", "find_order", "return_order", "track_order")
WORKS = {
    "one-call": (("get_weather",), ("get_weather",)),
    "chain": (ORDERS, ORDERS),
    "many-tools": (ORDERS, tuple(n for n, tool in CATALOGUE.items() if not any(map(iskeyword, tool.parameters)))),
}
"""By kind of work: which tools a task needs, and which are on offer (TRL takes functions, whose parameters are never
keywords of Python). An order must be found before anything is done with it, so those tasks need two calls."""
SIDES = ["ours", "rehearsing", "TRL"]


def main() -> None:
    options = arguments()
    os.environ["OMP_NUM_THREADS"] = "1"
    params, tasks = sized(load_params(ROOT / "params.yaml"), options), list(islice(drawn(options.work), options.tasks))
    python = trl_python(ROOT)
    sides = {}
    with tempfile.TemporaryDirectory(prefix="envace-bench-") as scratch, world_simulator() as server:
        for _ in range(options.tries):
            for name, run in (
                ("ours", lambda p, *rest: ours(by_server(p, server.base_url), *rest)),
                ("rehearsing", ours),
                ("TRL", lambda *a: theirs(python, options.continuous_batching, server.base_url, *a)),
            ):
                if name in options.sides:
                    found = run(params, tasks, options.model.resolve(), Path(tempfile.mkdtemp(dir=scratch)))
                    if name not in sides or found["rollouts_per_s"] > sides[name]["rollouts_per_s"]:
                        sides[name] = found
    columns = ("rollouts_per_s", "step_s", "generation_s", "outputs", "tokens", "calls", "reward")
    print(f"{'':12}" + "".join(f"{c:>16}" for c in columns) + "   (outputs, tokens, calls: a rollout)")
    for name, found in sides.items():
        print(f"{name:12}" + "".join(f"{found[c]:16.3f}" for c in columns))
    for side in sides.keys() - {"TRL"}:
        parts = {name: value for name, value in sides[side].items() if name.endswith("_s") and name not in columns}
        print(f"{side}, the rest of a step: " + ", ".join(f"{name} {value:.2f}" for name, value in parts.items()))
    for side, what in (("rehearsing", "more work than TRL"), ("ours", f"equal work, goal >= {GOAL}")):
        if {side, "TRL"} <= sides.keys():
            ratio = sides[side]["rollouts_per_s"] / sides["TRL"]["rollouts_per_s"]
            print(f"rollouts/s, {side} against TRL: {ratio:.2f} ({what})")


def sized(params: Params, options: argparse.Namespace) -> Params:
    """The shipped recipe for this comparison: the same limits as TRL's, no validation, one checkpoint at the end."""
    rollout = params.rollout.model_copy(
        update={
            "max_outputs": options.outputs,
            "max_act_tokens": options.max_tokens,
            "max_rehearse_tokens": options.max_tokens,
        }
    )
    train = params.train_policy.model_copy(
        update={
            "steps": options.steps,
            "warmup_steps": 0,
            "validate_every": options.steps + 1,
            "checkpoint_every": options.steps,
        }
    )
    return params.model_copy(update={"rollout": rollout, "train_policy": train})


def by_server(params: Params, base_url: str) -> Params:
    """The same with the calls answered by the server of the sample's tools."""
    changes = {
        "train_policy.method": "grpo",
        "train_policy.simulator.endpoint.base_url": base_url,
        "train_policy.simulator.endpoint.model": SIMULATOR_MODEL,
    }
    return parse_params(with_changes(params.model_dump(mode="json"), changes, "bench"), "bench")


def drawn(work: str) -> Iterator[Task]:
    """Sample tasks of one turn that this kind of work fits, all with the same tools on offer."""
    world, (needed, offered) = build_world(0), WORKS[work]
    for conversation in draw_conversations(world, 0, "train"):
        steps = [step for turn in conversation.turns for step in turn.steps]
        fits = len(steps) == (1 if work == "one-call" else 2) and {c.tool_name for s in steps for c in s} <= set(needed)
        if len(conversation.turns) == 1 and fits:
            yield to_task(to_raw_record(world, replace(conversation, tools=offered)), "train", [], "sample")


def ours(params: Params, tasks: list[Task], model: Path, scratch: Path) -> dict[str, float]:
    """Train with `envace.training` in a process of its own (it starts and ends a Ray cluster)."""
    write_json(
        scratch / "work.json", {"params": params.model_dump(mode="json"), "tasks": [t.model_dump() for t in tasks]}
    )
    command = [sys.executable, str(Path(__file__).with_name("our_side.py")), str(model), str(scratch)]
    return run_side(command, scratch)


def theirs(
    python: Path, continuous: bool, tools_at: str, params: Params, tasks: list[Task], model: Path, scratch: Path
) -> dict[str, float]:
    """Train with TRL in its own venv."""
    from transformers import AutoTokenizer

    layout = ChatLayout(AutoTokenizer.from_pretrained(model, local_files_only=True))
    prompts = [[*layout.opening(task), *layout.act_header] for task in tasks]
    work = {
        "params": params.model_dump(mode="json"),
        "tasks": [t.model_dump() for t in tasks],
        "prompt_ids": prompts,
        "continuous_batching": continuous,
        "tools_at": tools_at,
    }
    write_json(scratch / "work.json", work)
    return run_side([str(python), str(Path(__file__).with_name("trl_side.py")), str(model), str(scratch)], scratch)


def run_side(command: list[str], scratch: Path) -> dict[str, float]:
    """Run one side to its end; what it prints goes to a file that is shown where it fails."""
    log = scratch / "log.txt"
    with log.open("w") as file:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        code = subprocess.run(command, cwd=scratch, stdout=file, stderr=file, env=environment).returncode
    if code:
        raise SystemExit(f"{' '.join(command)} ended with {code}:\n{log.read_text()[-4000:]}")
    return read_json(scratch / "figures.json")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=ROOT / "models/base", help="a policy that can call the tool")
    parser.add_argument("--work", choices=WORKS, default="one-call", help="what the tasks need")
    parser.add_argument("--tasks", type=int, default=48, help="different tasks to draw from")
    parser.add_argument("--steps", type=int, default=8, help="training steps, the first one not counted")
    parser.add_argument("--outputs", type=int, default=4, help="most act outputs a rollout")
    parser.add_argument("--max-tokens", type=int, default=96, help="of an output (TRL: of a whole rollout)")
    parser.add_argument("--tries", type=int, default=1, help="the best of so many counts, both sides in turn")
    parser.add_argument("--continuous-batching", action="store_true", help="TRL with transformers' own, not generate()")
    parser.add_argument("--sides", nargs="*", default=SIDES, choices=SIDES)
    options = parser.parse_args()
    if not (options.model / "config.json").is_file():
        parser.error(f"{options.model}: no policy there; `make run` makes models/base, or name another one")
    return options


if __name__ == "__main__":
    main()
