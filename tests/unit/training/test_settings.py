"""What travels into a verl run: our settings in its agent-loop file, and tasks in its data set, unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from envace.config import Params
from envace.errors import TrainingError
from envace.training.dataset import write_dataset
from envace.training.settings import AGENT_LOOP, AGENT_LOOP_CLASS, read_settings, run_settings, write_settings
from envace.types import Task


def test_settings_come_back_as_they_were_written(params: Params, tmp_path: Path) -> None:
    settings = run_settings(params, tmp_path / "records")
    write_settings(tmp_path / "settings.yaml", settings)
    assert read_settings(str(tmp_path / "settings.yaml")) == settings
    assert settings.validation_rollout.act == params.train_policy.validation_act
    assert settings.rollout == params.rollout and settings.seed == params.train_policy.seed


def test_only_the_method_grpo_has_a_simulator_and_it_samples_in_its_own_way(params: Params, tmp_path: Path) -> None:
    assert run_settings(params, tmp_path).simulator is None
    train = params.train_policy.model_copy(update={"method": "grpo"})
    settings = run_settings(params.model_copy(update={"train_policy": train}), tmp_path)
    assert settings.simulator == train.simulator
    assert settings.rollout.rehearse == settings.validation_rollout.rehearse == train.simulator.sampling
    assert settings.rollout.act == params.rollout.act and settings.validation_rollout.act == train.validation_act


def test_verl_finds_the_agent_loop_in_the_file(plugins: Any, params: Params, tmp_path: Path) -> None:
    from omegaconf import OmegaConf
    from verl.utils.import_utils import load_class_from_fqn

    write_settings(tmp_path / "settings.yaml", run_settings(params, tmp_path))
    loop: Any = OmegaConf.load(tmp_path / "settings.yaml")[0]
    assert loop.name == AGENT_LOOP and loop._target_ == AGENT_LOOP_CLASS
    assert load_class_from_fqn(AGENT_LOOP_CLASS, "agent loop").__name__ == "EnvaceAgentLoop"


def test_a_run_that_was_not_started_here_is_refused(tmp_path: Path) -> None:
    for path in (None, "", str(tmp_path / "missing.yaml")):
        with pytest.raises(TrainingError, match="train_policy"):
            read_settings(path)


def test_unknown_settings_are_refused(params: Params, tmp_path: Path) -> None:
    written = json.loads(run_settings(params, tmp_path).model_dump_json()) | {"sampling": 1}
    (tmp_path / "settings.yaml").write_text(json.dumps([{"name": AGENT_LOOP, "settings": json.dumps(written)}]))
    with pytest.raises(ValidationError, match="sampling"):
        read_settings(str(tmp_path / "settings.yaml"))


def test_tasks_travel_whole_and_in_order(sample_tasks: list[Task], tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    tasks = sample_tasks[:30]
    write_dataset(tmp_path / "a.parquet", tasks, "train")
    write_dataset(tmp_path / "b.parquet", tasks, "train")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    rows = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert [Task.model_validate_json(r["extra_info"]["task"]) for r in rows] == tasks
    assert [r["extra_info"]["index"] for r in rows] == list(range(30))
    assert {(r["data_source"], r["extra_info"]["phase"]) for r in rows} == {("train", "train")}
