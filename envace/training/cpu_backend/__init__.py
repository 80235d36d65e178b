"""verl 0.9.1 on machines without a GPU, through its own registries. Does nothing where nvidia-smi finds one."""

POLICY_VARIABLE = "ENVACE_POLICY"
"""Environment variable of a worker: which policy it trains, where there is more than one. It names the server."""


def gpu_present() -> bool:
    """Whether this host has an NVIDIA GPU.

    Asks nvidia-smi, not torch: Ray actors without a GPU share on a GPU host see none through `torch.cuda`.
    """
    from verl.plugin.platform.platform_cuda import PlatformCUDA

    return PlatformCUDA().is_platform_available(use_smi_check=True)


def activate() -> bool:
    """Install the backend in this process unless there is a GPU. Returns whether it is active."""
    if gpu_present():
        return False
    from verl.plugin.platform import set_platform

    from envace.training.cpu_backend.hooks import install
    from envace.training.cpu_backend.platform import CpuPlatform

    set_platform(CpuPlatform())
    install()
    return True
