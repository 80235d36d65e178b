"""Reports about checkpoints: resumed runs that trained nothing, took a damaged one, or drew other random numbers."""

from __future__ import annotations

import random
import shutil
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envace.chat.layout import ChatLayout
from envace.config import Params
from envace.engines.scripted import ScriptedEngine
from envace.errors import TrainingError
from envace.rollout.loop import RolloutSettings, unfold
from envace.training.bring_home import TrainingOutputs, bring_home
from envace.training.checkpoints import newest_sealed, seal
from envace.training.recorder import Recorder
from envace.types import Task

TASKS, BATCH = 6, 2  # three steps an epoch


class Loader:
    """verl's own data loader and sampler, driven by the method of verl's trainer that fetches a step's tasks."""

    def __init__(self) -> None:
        with warnings.catch_warnings(action="ignore"):  # verl's, about engines nobody asked for
            from torchdata.stateful_dataloader import StatefulDataLoader
            from verl.trainer.ppo.utils import create_rl_sampler

            from envace.training.trainer import EnvaceTrainer

        tasks: Any = [{"raw_prompt": [], "index": index} for index in range(TASKS)]
        sampler = create_rl_sampler(_DataConfig(shuffle=True, seed=3), tasks)
        loader = StatefulDataLoader(tasks, batch_size=BATCH, sampler=sampler, drop_last=True, collate_fn=_collate)
        self._trainer: Any = SimpleNamespace(train_dataloader=loader, train_dataloader_it=None)
        self._fetch = EnvaceTrainer._fetch_one_gen_batch

    def step(self) -> list[int]:
        return [int(i) for i in self._fetch(self._trainer)["index"]]

    def save(self, path: Path) -> None:
        import torch

        torch.save(self._trainer.train_dataloader.state_dict(), path)

    def load(self, path: Path) -> None:
        import torch

        self._trainer.train_dataloader.load_state_dict(torch.load(path, weights_only=False))


class _DataConfig(SimpleNamespace):
    def get(self, name: str) -> Any:
        return getattr(self, name, None)


def _collate(rows: list[dict[str, Any]]) -> dict[str, Any]:
    import numpy
    import torch

    prompts = numpy.array([None] * len(rows), dtype=object)
    return {"raw_prompt": prompts, "index": torch.tensor([row["index"] for row in rows])}


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("stopped_after", range(1, 8))
def test_verl_5725_a_resume_at_an_epoch_boundary_trains_on_with_the_tasks_that_were_due(
    stopped_after: int, tmp_path: Path
) -> None:
    """Steps 3 and 6 end an epoch: the saved loader has nothing left to give there."""
    whole = Loader()
    wanted = [whole.step() for _ in range(9)]
    for epoch in (wanted[:3], wanted[3:6], wanted[6:]):
        assert sorted(i for step in epoch for i in step) == list(range(TASKS))
    assert len({str(epoch) for epoch in (wanted[:3], wanted[3:6], wanted[6:])}) == 3
    first = Loader()
    done = [first.step() for _ in range(stopped_after)]
    first.save(tmp_path / "data.pt")
    resumed = Loader()
    resumed.load(tmp_path / "data.pt")
    assert done + [resumed.step() for _ in range(9 - stopped_after)] == wanted


def test_verl_5725_a_run_that_trained_no_step_fails_loudly(params: Params, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "records")
    for step in (1, 2, 3):  # the epoch that was there before the resume
        recorder.write("train", step, {"reward/mean": 0.5}, [], {})
    out = TrainingOutputs(*(tmp_path / "out" / name for name in ("policy", "trained", "reports", "timings.json")))
    asked = params.train_policy.model_copy(update={"steps": 6})
    with pytest.raises(TrainingError, match=r"ended after steps \[1\]\.\.\[3\] of 1\.\.6"):
        bring_home(asked, tmp_path / "checkpoints", recorder, out, validated=True, more={})
    assert not (tmp_path / "out").exists()


FILES = (
    "actor/model_world_size_1_rank_0.pt",
    "actor/optim_world_size_1_rank_0.pt",
    "actor/extra_state_world_size_1_rank_0.pt",
    "actor/fsdp_config.json",
    "actor/huggingface/config.json",
    "actor/huggingface/generation_config.json",
    "actor/huggingface/model.safetensors",
    "actor/huggingface/tokenizer.json",
    "actor/huggingface/tokenizer_config.json",
    "data.pt",
)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0x10
    path.write_bytes(bytes(content))


def remove(path: Path) -> None:
    path.unlink()


def add(path: Path) -> None:
    path.with_name(f"{path.name}.1").write_bytes(b"")


def swap(path: Path) -> None:
    """The same file of the checkpoint before."""
    shutil.copyfile(str(path).replace("global_step_10", "global_step_5"), path)


@pytest.mark.parametrize("damage", [truncate, flip, remove, add, swap], ids=lambda f: f.__name__)
def test_speculators_739_a_damaged_newest_checkpoint_gives_way_to_the_one_before_and_is_named(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    """50 corruptions in all: each kind with each file in turn, at the size of the tiny policy's checkpoints."""
    for step in (5, 10):
        rng = random.Random(step)
        for name in FILES:
            path = tmp_path / "whole" / f"global_step_{step}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(rng.randbytes(2_300_000 if name.endswith((".pt", ".safetensors")) else 3_000))
        seal(tmp_path / "whole" / f"global_step_{step}")
    for name in FILES:
        folder = shutil.copytree(tmp_path / "whole", tmp_path / "run")
        damage(folder / "global_step_10" / name)
        said: list[str] = []
        start = time.monotonic()
        newest = newest_sealed(folder, said.append)
        assert time.monotonic() - start < 2
        assert newest == (folder / "global_step_5", 5)
        assert len(said) == 1 and "step 10" in said[0] and name in said[0]
        shutil.rmtree(folder)


def test_ms_swift_9935_a_resumed_run_draws_what_the_uninterrupted_one_would(
    layout: ChatLayout, params: Params, make_task: Callable[..., Task], write: Callable[..., str]
) -> None:
    """Seeds come from (run, phase, step, task, rollout, output) alone, not from a state that a resume could reset."""
    import asyncio

    import torch

    room = params.rollout.model_copy(update={"max_prompt_tokens": 4000, "max_act_tokens": 400})

    def seeds(step: int, index: int) -> list[int]:
        engine = ScriptedEngine(layout, [write(), '{"sky": "sunny"}', "It is sunny."])
        settings = RolloutSettings(room, params.reward, f"{params.train_policy.seed}/train/{step}")
        asyncio.run(unfold(make_task(), index, engine=engine, layout=layout, settings=settings))
        torch.rand(3)
        random.random()
        return [request.seed for request in engine.requests]

    torch.manual_seed(0)
    whole = {(step, index): seeds(step, index) for step in range(1, 7) for index in range(3)}
    torch.manual_seed(0)
    random.seed(0)
    resumed = {(step, index): seeds(step, index) for step in range(4, 7) for index in range(3)}
    assert all(whole[key] == found for key, found in resumed.items())
    drawn = [seed for found in whole.values() for seed in found]
    assert len(drawn) == 6 * 3 * 3 == len(set(drawn)), "no step repeats the draws of another"
