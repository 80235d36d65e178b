"""What verl loads in every process (entry point `verl.plugins`): the CPU backend, the estimator, the trainer."""

from collections.abc import Iterator

from envace.training.cpu_backend import activate

CPU_BACKEND_ACTIVE = activate()  # first: the modules below build on the platform

from envace.training.estimator import ESTIMATOR  # noqa: E402
from envace.training.per_role_trainer import PER_ROLE_MODE  # noqa: E402
from envace.training.trainer import TRAINER_MODE  # noqa: E402


def check_registered() -> None:
    """Raise TrainingError naming what verl does not have of ours. verl itself swallows a plug-in's import error."""
    from envace.errors import TrainingError

    missing = [*_missing(), *(_missing_of_the_cpu_backend() if CPU_BACKEND_ACTIVE else ())]
    if missing:
        raise TrainingError(f"verl has not registered: {', '.join(missing)}; is this project installed beside verl?")


def _missing() -> Iterator[str]:
    from verl.experimental.agent_loop.agent_loop import AgentLoopBase
    from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY

    from envace.training import settings

    if ESTIMATOR not in ADV_ESTIMATOR_REGISTRY:
        yield f"estimator {ESTIMATOR}"
    yield from (f"trainer {mode}" for mode in (TRAINER_MODE, PER_ROLE_MODE) if mode not in TRAINER_REGISTRY)
    loop = _object(settings.AGENT_LOOP_CLASS)  # verl finds it by this name, in workers of its own
    if not (isinstance(loop, type) and issubclass(loop, AgentLoopBase)):
        yield f"agent loop {settings.AGENT_LOOP_CLASS}"


def _missing_of_the_cpu_backend() -> Iterator[str]:
    import verl.utils.distributed as distributed
    import verl.workers.engine.fsdp.transformer_impl as fsdp
    from verl.plugin.platform import get_platform
    from verl.workers.engine.base import EngineRegistry
    from verl.workers.rollout.base import _ROLLOUT_REGISTRY
    from verl.workers.rollout.replica import RolloutReplicaRegistry

    from envace.training.cpu_backend import hooks

    if get_platform().device_name != "cpu":
        yield "platform cpu"
    if hooks.ROLLOUT_NAME not in RolloutReplicaRegistry._registry:
        yield f"rollout server {hooks.ROLLOUT_NAME}"
    if _object(_ROLLOUT_REGISTRY.get((hooks.ROLLOUT_NAME, "async"), "")) is None:
        yield f"trainer's side of the rollout server {hooks.ROLLOUT_NAME}"
    if "cpu" not in EngineRegistry._engines["language_model"]["fsdp2"]:
        yield "FSDP engine for cpu"
    if distributed.initialize_global_process_group_ray is not hooks.init_process_group:
        yield "process group of gloo alone"
    if fsdp.CPUOffloadPolicy is not hooks.no_offload:  # type: ignore[attr-defined]
        yield "FSDP without pinned memory"


def _object(name: str) -> object | None:
    """What a dotted name stands for; None where it cannot be imported."""
    from importlib import import_module

    module, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(module), attribute, None) if module else None
    except ImportError:
        return None
