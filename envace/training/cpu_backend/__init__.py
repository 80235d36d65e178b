"""verl 0.9.1 without a GPU, through its own registries: for `train_policy.backend: cpu`, whatever the machine has."""

import os

BACKEND_VARIABLE = "ENVACE_TRAINING_BACKEND"
"""Environment variable of all processes of a training: `train_policy.backend`, set before verl is loaded."""

POLICY_VARIABLE = "ENVACE_POLICY"
"""Environment variable of a worker: which policy it trains, where there is more than one. It names the server."""


def gpu_present() -> bool:
    """Whether this host has an NVIDIA GPU.

    Asks nvidia-smi, not torch: Ray actors without a GPU share on a GPU host see none through `torch.cuda`.
    """
    from verl.plugin.platform.platform_cuda import PlatformCUDA

    return PlatformCUDA().is_platform_available(use_smi_check=True)


def is_wanted() -> bool:
    """Whether this process belongs to a training on the CPU; outside of any, whether the host has no GPU."""
    backend = os.environ.get(BACKEND_VARIABLE)
    return backend == "cpu" if backend else not gpu_present()


def activate() -> bool:
    """Install the backend in this process where it is wanted. Returns whether it is active."""
    if not is_wanted():
        return False
    from verl.plugin.platform import set_platform

    from envace.training.cpu_backend.hooks import install
    from envace.training.cpu_backend.platform import CpuPlatform

    set_platform(CpuPlatform())
    install()
    return True
