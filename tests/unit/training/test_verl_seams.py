"""The names of verl that are imported, overridden or read are in the pinned version, with the parameters used."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import importlib
import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envace.training.labels import RowLabel

# module, name, and the parameters (of a class: of its constructor) that we pass or take
SEAMS: list[tuple[str, str, list[str]]] = [
    ("verl.experimental.agent_loop.agent_loop", "AgentLoopBase", ["trainer_config", "server_manager", "tokenizer"]),
    ("verl.experimental.agent_loop.agent_loop", "AgentLoopBase.run", ["sampling_params", "kwargs"]),
    ("verl.experimental.agent_loop.agent_loop", "AgentLoopMetrics", []),
    (
        "verl.experimental.agent_loop.agent_loop",
        "AgentLoopOutput",
        [
            *("prompt_ids", "response_ids", "response_mask", "response_logprobs"),
            *("reward_score", "num_turns", "metrics", "extra_fields"),
        ],
    ),
    ("verl.checkpoint_engine", "CheckpointEngineManager", ["config", "actor_wg", "replicas"]),
    ("verl.checkpoint_engine", "CheckpointEngineManager.update_weights", ["global_steps"]),
    ("verl.checkpoint_engine", "CheckpointEngineManager.sleep_replicas", []),
    ("verl.single_controller.ray", "RayClassWithInitArgs", ["cls"]),
    ("verl.single_controller.ray", "RayWorkerGroup", ["resource_pool", "ray_cls_with_init"]),
    ("verl.single_controller.ray", "RayWorkerGroup.spawn", ["prefix_set"]),
    ("verl.single_controller.ray", "create_colocated_worker_cls", ["class_dict"]),
    ("verl.single_controller.ray.base", "ResourcePoolManager.get_resource_pool", ["role"]),
    ("verl.plugin.platform", "get_platform", []),
    ("verl.plugin.platform", "set_platform", ["platform"]),
    ("verl.plugin.platform.platform_base", "PlatformBase", []),
    ("verl.plugin.platform.platform_cuda", "PlatformCUDA.is_platform_available", ["use_smi_check"]),
    ("verl.plugin.platform.platform_manager", "PlatformRegistry.register", ["platform"]),
    ("verl.trainer.main_ppo", "TaskRunnerV1", []),
    ("verl.trainer.main_ppo", "run_ppo", ["config", "task_runner_class"]),
    ("verl.trainer.ppo.core_algos", "ADV_ESTIMATOR_REGISTRY", []),
    ("verl.trainer.ppo.core_algos", "register_adv_est", ["name_or_enum"]),
    ("verl.trainer.ppo.utils", "Role.ActorRollout", []),
    ("verl.trainer.ppo.utils", "Role.ActorRolloutRef", []),
    ("verl.trainer.ppo.utils", "need_critic", ["config"]),
    ("verl.trainer.ppo.utils", "need_reference_policy", ["config"]),
    ("verl.trainer.ppo.v1.trainer_base", "TRAINER_REGISTRY", []),
    ("verl.trainer.ppo.v1.trainer_base", "register_trainer", ["name"]),
    ("verl.trainer.ppo.v1.trainer_sync", "PPOTrainerSync", ["config"]),
    ("verl.trainer.ppo.v1.trainer_sync", "PPOTrainerSync.on_init_end", []),
    ("verl.trainer.ppo.v1.trainer_sync", "PPOTrainerSync._setup", []),
    ("verl.trainer.ppo.v1.trainer_sync", "PPOTrainerSync.on_step_end", []),
    ("verl.trainer.ppo.v1.trainer_sync", "PPOTrainerSync.on_sample_end", []),
    ("verl.trainer.ppo.v1.trainer_sync", "PPOTrainerSync.get_llm_client", []),
    ("verl.trainer.ppo.v1.trainer_sync", "PPOTrainerSync._save_checkpoint", []),
    ("verl.trainer.ppo.v1.trainer_sync", "PPOTrainerSync._compute_old_log_prob", ["batch", "metrics"]),
    ("verl.trainer.ppo.v1.trainer_sync", "PPOTrainerSync._compute_ref_log_prob", ["batch", "metrics"]),
    ("verl.trainer.ppo.v1.trainer_sync", "PPOTrainerSync._get_required_batch_multiple", ["dp_size"]),
    ("verl.trainer.ppo.v1.trainer_sync", "PPOTrainerSync._balance_batch", ["batch", "metrics"]),
    ("verl.trainer.ppo.v1.trainer_sync", "PPOTrainerSync._compute_advantage", ["batch", "metrics"]),
    ("verl.trainer.ppo.v1.trainer_sync", "PPOTrainerSync._update_actor", ["batch", "metrics"]),
    (
        "verl.trainer.ppo.v1.trainer_sync",
        "PPOTrainerSync._compute_metrics",
        ["batch", "metrics", "timing_raw", "global_steps", "epoch"],
    ),
    (
        "verl.trainer.ppo.v1.trainer_sync",
        "PPOTrainerSync._val_metrics_update",
        ["data_sources", "sample_uids", "reward_extra_infos_dict", "sample_turns"],
    ),
    ("verl.utils.config", "omega_conf_to_dataclass", ["config"]),
    ("verl.utils.config", "validate_config", ["config", "use_reference_policy", "use_critic"]),
    ("verl.utils.distributed", "initialize_global_process_group_ray", ["timeout_second", "backend"]),
    ("verl.workers.engine.base", "EngineRegistry.register", ["model_type", "backend", "device"]),
    ("verl.workers.engine.base", "EngineRegistry._engines", []),
    ("verl.workers.engine.fsdp.transformer_impl", "FSDPEngineWithLMHead", []),
    ("verl.workers.engine.fsdp.transformer_impl", "FSDPEngineWithLMHead.prepare_model_inputs", ["micro_batch"]),
    (
        "verl.workers.engine.fsdp.transformer_impl",
        "FSDPEngineWithLMHead.prepare_model_outputs",
        ["output", "output_args", "micro_batch", "logits_processor_func"],
    ),
    ("verl.utils.tensordict_utils", "get_non_tensor_data", ["data", "key", "default"]),
    ("verl.utils.torch_functional", "entropy_from_logits", ["logits"]),
    ("verl.workers.engine.fsdp.transformer_impl", "CPUOffloadPolicy", ["pin_memory"]),
    # called on worker groups, whose methods are these
    ("verl.workers.engine_workers", "ActorRolloutRefWorker.init_model", []),
    ("verl.workers.engine_workers", "ActorRolloutRefWorker.update_actor", ["data"]),
    (
        "verl.workers.engine_workers",
        "ActorRolloutRefWorker.save_checkpoint",
        ["local_path", "hdfs_path", "global_step", "max_ckpt_to_keep"],
    ),
    ("verl.workers.engine_workers", "ActorRolloutRefWorker.load_checkpoint", ["local_path", "del_local_after_load"]),
    ("verl.workers.rollout.base", "BaseRollout", ["config", "model_config", "device_mesh"]),
    ("verl.workers.rollout.base", "BaseRollout.resume", ["tags"]),
    ("verl.workers.rollout.base", "BaseRollout.release", []),
    ("verl.workers.rollout.base", "BaseRollout.update_weights", ["weights", "wire_format", "kwargs"]),
    ("verl.workers.rollout.base", "_ROLLOUT_REGISTRY", []),
    ("verl.workers.rollout.replica", "RolloutReplica.launch_servers", []),
    ("verl.workers.rollout.replica", "RolloutReplica.server_handle", []),
    ("verl.workers.rollout.replica", "RolloutReplicaRegistry.register", ["name", "loader"]),
    ("verl.workers.rollout.replica", "RolloutReplicaRegistry._registry", []),
    (
        "verl.workers.rollout.replica",
        "TokenOutput",
        ["token_ids", "log_probs", "stop_reason", "num_preempted", "extra_fields"],
    ),
    ("verl.workers.rollout.llm_server", "LLMServerManager.create", []),
    ("verl.workers.rollout.llm_server", "LLMServerManager.get_client", ["client_cls", "kwargs"]),
    ("verl.workers.rollout.llm_server", "LLMServerManager.get_replicas", []),
    ("verl.workers.rollout.llm_server", "LLMServerClient", ["config", "load_balancer_handle"]),
    ("verl.workers.rollout.llm_server", "LLMServerClient._acquire_server", ["request_id", "extra"]),
    ("verl.workers.rollout.llm_server", "LLMServerClient._release_server", ["server_id", "request_id"]),
    ("verl.workers.rollout.llm_server", "LLMServerClient._vllm_request_id", ["request_id"]),
    (
        "verl.workers.rollout.llm_server",
        "LLMServerClient.generate",
        ["request_id", "prompt_ids", "sampling_params", "image_data", "video_data"],
    ),
    ("transfer_queue", "kv_batch_get", ["keys", "partition_id", "select_fields"]),
    ("transfer_queue", "KVBatchMeta", ["keys", "tags", "partition_id", "extra_info"]),
    ("transfer_queue", "KVBatchMeta.reorder", []),
    ("transfer_queue", "KVBatchMeta.select_keys", ["keys_to_select"]),
]
# what verl's objects set on themselves in their constructors and set-up, and we read or replace
ATTRIBUTES = [
    (
        "verl.trainer.ppo.v1.trainer_base",
        "PPOTrainer",
        [
            *("config", "global_steps", "use_reference_policy", "actor_rollout_wg", "replay_buffer"),
            *("llm_server_manager", "resource_pool_manager", "role_worker_mapping"),
        ],
    ),
    ("verl.trainer.ppo.v1.replay_buffer", "ReplayBuffer", ["poll_interval"]),
    ("verl.single_controller.base.worker_group", "WorkerGroup", ["_dispatch_info"]),
    ("verl.workers.rollout.llm_server", "LLMServerManager", ["rollout_replica_class"]),
    ("verl.workers.rollout.llm_server", "LLMServerClient", ["config"]),
    (
        "verl.workers.rollout.replica",
        "RolloutReplica",
        ["config", "model_config", "replica_rank", "servers", "_server_handle", "_server_address"],
    ),
]
# names that are set on verl's modules by importing them whole: (module as imported, attribute)
WHOLE_MODULES = {
    "verl.utils.tensordict_utils": ["get_non_tensor_data"],
    "verl.utils.distributed": ["initialize_global_process_group_ray"],
    "verl.workers.engine.fsdp.transformer_impl": ["CPUOffloadPolicy"],
    "verl.workers.rollout.base": ["_ROLLOUT_REGISTRY"],
    "verl.workers.rollout.replica": ["RolloutReplicaRegistry"],
    "transfer_queue": ["kv_batch_get"],
}


def find(module: str, name: str) -> Any:
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("module, name, parameters", SEAMS, ids=lambda v: v if isinstance(v, str) else "")
def test_a_seam_exists_with_its_parameters(plugins: Any, module: str, name: str, parameters: list[str]) -> None:
    found = find(module, name)
    if name in ("CPUOffloadPolicy", "initialize_global_process_group_ray"):
        return  # replaced by the CPU backend: the originals are looked at below
    if parameters:
        missing = set(parameters) - set(inspect.signature(found).parameters)
        assert not missing, f"{module}.{name} has no {sorted(missing)}"


@pytest.mark.parametrize("module, name, attributes", ATTRIBUTES, ids=lambda v: v if isinstance(v, str) else "")
def test_an_object_has_its_attributes(plugins: Any, module: str, name: str, attributes: list[str]) -> None:
    source = inspect.getsource(find(module, name))
    missing = [each for each in attributes if not re.search(rf"\bself\.{each}\b(: [^=\n]+)? = ", source)]
    assert not missing, f"{module}.{name} sets no {missing}"


def test_a_batch_waits_in_the_replay_buffer_for_as_long_as_it_is_told() -> None:
    from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

    assert "time.sleep(self.poll_interval)" in inspect.getsource(ReplayBuffer)


def test_servers_may_have_another_class_of_replicas() -> None:
    """What envace.training.second_policy relies on."""
    from verl.workers.rollout.llm_server import LLMServerManager

    assert 'if not hasattr(self, "rollout_replica_class")' in inspect.getsource(LLMServerManager.__init__)


def test_what_the_cpu_backend_replaces_is_there_to_be_replaced() -> None:
    folder = Path(str(importlib.util.find_spec("verl").origin)).parent  # type: ignore[union-attr]
    engine = (folder / "workers/engine/fsdp/transformer_impl.py").read_text()
    assert "CPUOffloadPolicy(pin_memory=True)" in engine
    distributed = (folder / "utils/distributed.py").read_text()
    assert re.search(r"def initialize_global_process_group_ray\(timeout_second=None, backend=None", distributed)
    for name in ("engine_workers.py", "engine/fsdp/transformer_impl.py"):
        source = (folder / "workers" / name).read_text()
        assert "initialize_global_process_group_ray" in source or "initialize_global_process_group_ray" in distributed


def test_a_worker_group_takes_variables_for_its_workers() -> None:
    from verl.single_controller.ray import RayWorkerGroup

    source = inspect.getsource(RayWorkerGroup)
    assert 'kwargs.get("worker_env"' in source and "env_vars.update(worker_env)" in source


def test_the_list_of_seams_is_complete(project_root: Path) -> None:
    listed = {(module, name.split(".")[0]) for module, name, _ in SEAMS}
    for path in sorted((project_root / "envace/training").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("verl", "transfer_queue"):
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    assert (node.module, alias.name) in listed or whole in WHOLE_MODULES, f"{path.name}: {whole}"
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] in ("verl", "transfer_queue"):
                        assert alias.name in WHOLE_MODULES, f"{path.name}: {alias.name}"


def test_verl_is_exactly_the_pinned_version(project_root: Path) -> None:
    from importlib.metadata import version

    assert version("verl") == "0.9.1"
    assert "verl==0.9.1" in (project_root / "pyproject.toml").read_text()
    assert re.search(r"^verl==0\.9\.1$", (project_root / "constraints/cpu.txt").read_text(), re.MULTILINE)


class Replicas:
    """What verl's LLMServerManager is to a client."""

    def __init__(self, config: Any, *replicas: Any) -> None:
        self.config, self.replicas = config, list(replicas)

    def get_replicas(self) -> list[Any]:
        return self.replicas

    def get_client(self, client_cls: Any = None, **kwargs: Any) -> Any:
        from verl.workers.rollout.llm_server import LLMServerClient

        return (client_cls or LLMServerClient)(config=self.config, load_balancer_handle=None, **kwargs)


def test_one_cpu_server_is_asked_directly_and_by_the_rollouts_own_request_id(composed: Any) -> None:
    from envace.training.cpu_backend.one_server import OneServerClient, client_of
    from envace.training.cpu_backend.rollout_server import CpuReplica

    asked = []

    class Server:
        async def remote(self, **kwargs: Any) -> Any:
            asked.append(kwargs)
            return SimpleNamespace(extra_fields={"global_steps": 3}, token_ids=[1])

    replica: Any = object.__new__(CpuReplica)
    replica.servers = [SimpleNamespace(generate=Server())]
    client = client_of(Replicas(composed, replica))
    output = asyncio.run(client.generate("task#0", prompt_ids=[5], sampling_params={"seed": 1}))
    assert output.extra_fields == {"global_steps": 3, "min_global_steps": 3, "max_global_steps": 3}
    assert (asked[0]["request_id"], asked[0]["prompt_ids"]) == ("task#0", [5])
    for others in ([replica, replica], [object()]):  # several servers, or another backend's: verl's balancer
        assert type(client_of(Replicas(composed, *others))) is not OneServerClient


def test_labels_hold_exactly_what_the_agent_loop_writes() -> None:
    written = {"role": "act", "scorable": True, "order": [3, 1, 2], "record": "{}", "global_steps": 4}
    label = RowLabel.of(written, padding=False)
    assert dataclasses.astuple(label) == ("act", "3#1", True, (3, 1, 2), "{}", (0.0, 0.0), ()) and label.counts
    assert RowLabel.of(written | {"seconds": [0.5, 2.0]}, padding=False).seconds == (0.5, 2.0)
    padded = RowLabel.of(written, padding=True)
    assert not padded.counts and padded.record == ""
