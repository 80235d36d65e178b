"""What verl loads in every process (entry point `verl.plugins`): the CPU backend, the estimator, the trainer."""

from envace.training.cpu_backend import activate

CPU_BACKEND_ACTIVE = activate()  # first: the modules below build on the platform

from envace.training.estimator import ESTIMATOR  # noqa: E402
from envace.training.per_role_trainer import PER_ROLE_MODE  # noqa: E402
from envace.training.trainer import TRAINER_MODE  # noqa: E402


def check_registered() -> None:
    """Raise TrainingError naming what verl does not know. verl itself swallows a plug-in's import error."""
    from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY
    from verl.workers.engine.base import EngineRegistry
    from verl.workers.rollout.replica import RolloutReplicaRegistry

    from envace.errors import TrainingError
    from envace.training.cpu_backend.hooks import ROLLOUT_NAME

    missing = [
        name
        for name, present in (
            (f"estimator {ESTIMATOR}", ESTIMATOR in ADV_ESTIMATOR_REGISTRY),
            *((f"trainer {mode}", mode in TRAINER_REGISTRY) for mode in (TRAINER_MODE, PER_ROLE_MODE)),
        )
        if not present
    ]
    if CPU_BACKEND_ACTIVE:
        if ROLLOUT_NAME not in RolloutReplicaRegistry._registry:
            missing.append(f"rollout server {ROLLOUT_NAME}")
        if "cpu" not in EngineRegistry._engines["language_model"]["fsdp2"]:
            missing.append("FSDP engine for cpu")
    if missing:
        raise TrainingError(f"verl has not registered: {', '.join(missing)}; is this project installed beside verl?")
