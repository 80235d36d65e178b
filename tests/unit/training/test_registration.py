"""What is ours stands in verl's registries, is what verl asks for, and is named where it is missing."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

import pytest


def test_everything_of_ours_is_registered(plugins: Any) -> None:
    from verl.trainer.ppo.core_algos import get_adv_estimator_fn
    from verl.trainer.ppo.v1.trainer_base import get_trainer_cls

    from envace.training.estimator import role_wise_grpo
    from envace.training.trainer import EnvaceTrainer

    plugins.check_registered()
    assert get_adv_estimator_fn("role_wise_grpo") is role_wise_grpo
    assert get_trainer_cls("envace_sync") is EnvaceTrainer


def test_what_is_missing_is_named(plugins: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from verl.plugin.platform import set_platform
    from verl.plugin.platform.platform_cuda import PlatformCUDA
    from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY
    from verl.workers.engine.base import EngineRegistry
    from verl.workers.rollout.base import _ROLLOUT_REGISTRY
    from verl.workers.rollout.replica import RolloutReplicaRegistry

    from envace.errors import TrainingError
    from envace.training import settings
    from envace.training.cpu_backend.platform import CpuPlatform

    def told() -> str:
        with pytest.raises(TrainingError, match="verl has not registered") as raised:
            plugins.check_registered()
        return str(raised.value)

    entries: tuple[tuple[Any, Any, str], ...] = (
        (ADV_ESTIMATOR_REGISTRY, "role_wise_grpo", "estimator role_wise_grpo"),
        (TRAINER_REGISTRY, "envace_sync", "trainer envace_sync"),
        (TRAINER_REGISTRY, "envace_per_role", "trainer envace_per_role"),
        (RolloutReplicaRegistry._registry, "envace_cpu", "rollout server envace_cpu"),
        (_ROLLOUT_REGISTRY, ("envace_cpu", "async"), "trainer's side of the rollout server envace_cpu"),
        (EngineRegistry._engines["language_model"]["fsdp2"], "cpu", "FSDP engine for cpu"),
    )
    for registry, key, name in entries:
        with monkeypatch.context() as patch:
            patch.delitem(registry, key)  # type: ignore[arg-type]
            assert f"registered: {name};" in told()
    for owner, attribute, value, name in (
        ("verl.utils.distributed", "initialize_global_process_group_ray", print, "process group of gloo alone"),
        ("verl.workers.engine.fsdp.transformer_impl", "CPUOffloadPolicy", print, "FSDP without pinned memory"),
        (settings.__name__, "AGENT_LOOP_CLASS", "envace.training.agent_loop.Nothing", "agent loop envace.training"),
        (settings.__name__, "AGENT_LOOP_CLASS", "envace.training.nowhere.Loop", "agent loop envace.training.nowhere"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(importlib.import_module(owner), attribute, value)
            assert f"registered: {name}" in told()
    set_platform(PlatformCUDA())
    try:
        assert "registered: platform cpu;" in told()
    finally:
        set_platform(CpuPlatform())
    plugins.check_registered()


def test_verl_takes_the_trainer_for_a_synchronous_one(plugins: Any) -> None:
    from envace.training.trainer import EnvaceTrainer

    trainer: Any = object.__new__(EnvaceTrainer)
    trainer.trainer_mode = "envace_sync"  # as verl's constructor does
    assert trainer.trainer_mode == "sync"


def test_the_platform_answers_everything_that_verl_may_ask(plugins: Any) -> None:
    from verl.plugin.platform.platform_base import PlatformBase

    from envace.training.cpu_backend.platform import CpuPlatform

    assert not CpuPlatform.__abstractmethods__
    platform = CpuPlatform()
    for name in PlatformBase.__abstractmethods__:
        assert hasattr(platform, name)
    platform.synchronize()
    assert platform.device_module.device_count() == platform.device_count() == 1
    assert str(platform.current_device()) == "cpu" and platform.communication_backend_name() == "gloo"


def test_the_rollout_server_has_every_method_that_verl_calls_on_it(plugins: Any) -> None:
    import verl.workers.rollout.replica as replica

    from envace.training.cpu_backend.rollout_server import CpuReplica, CpuServer, CpuServerAdapter

    called = set(re.findall(r"\bserver\.(\w+)\.remote", inspect.getsource(replica)))
    assert len(called) >= 7
    assert [name for name in sorted(called) if not callable(getattr(CpuServer, name, None))] == []
    assert not CpuReplica.__abstractmethods__ and not CpuServerAdapter.__abstractmethods__
    taken = set(inspect.signature(CpuServer.generate).parameters)
    assert taken >= {"request_id", "prompt_ids", "sampling_params", "image_data", "video_data"}
