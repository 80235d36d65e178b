"""Our side of bench_vs_trl.py: a training as the stage `train_policy` runs it. Arguments: model, scratch folder."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import fmean

from envace.config import parse_params
from envace.files import read_json, write_json
from envace.quiet import be_quiet
from envace.types import Role, Task


def main() -> None:
    model, scratch = map(Path, sys.argv[1:])
    be_quiet()
    from envace.training.bring_home import TrainingOutputs
    from envace.training.launch import train

    work = read_json(scratch / "work.json")
    tasks = [Task.model_validate(t) for t in work["tasks"]]
    outputs = TrainingOutputs(scratch / "policy", scratch / "trained", scratch / "reports", scratch / "timings.json")
    params = parse_params(work["params"], "work.json")
    train(params, tasks, model, scratch / "state", outputs)
    write_json(scratch / "figures.json", figures(scratch, own_rehearsals=params.train_policy.method != "grpo"))


def figures(scratch: Path, own_rehearsals: bool) -> dict[str, float]:
    """Means over all steps but the first; checkpoints are left out. Only what the policy wrote counts as output."""
    import pyarrow.parquet as pq

    from envace.training.timings import PARTS

    steps = read_json(scratch / "timings.json")["steps"][1:]
    table = pq.read_table(scratch / "reports/rollouts.parquet").to_pylist()
    rollouts = [r for r in table if r["phase"] == "train" and r["step"] > 1]
    act = Role.ACT.value
    written = [[o for o in r["outputs"] if own_rehearsals or o["role"] == act] for r in rollouts]
    split = {f"{part}_s": fmean(s[part] for s in steps) for part in PARTS if part != "checkpoint"}
    return split | rates(
        [sum(s[part] for part in PARTS if part != "checkpoint") for s in steps],
        [s["generation"] for s in steps],
        outputs=[len(made) for made in written],
        tokens=[sum(o["tokens"] for o in made) for made in written],
        calls=[sum(o["role"] == Role.REHEARSE.value for o in r["outputs"]) for r in rollouts],
        rewards=[r["reward"] for r in rollouts if r["reward"] is not None],
    )


def rates(
    seconds: list[float],
    generation: list[float],
    *,
    outputs: list[int],
    tokens: list[int],
    calls: list[int],
    rewards: list[float],
) -> dict[str, float]:
    """The figures of one side, from its steps and its rollouts."""
    return {
        "rollouts_per_s": len(outputs) / sum(seconds),
        "step_s": fmean(seconds),
        "generation_s": fmean(generation),
        "outputs": fmean(outputs),
        "tokens": fmean(tokens),
        "calls": fmean(calls),
        "reward": fmean(rewards),
    }


if __name__ == "__main__":
    main()
