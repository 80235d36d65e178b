"""A verl platform for plain CPUs: gloo, no streams, no device memory."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry

_HOST_MEMORY = (8 << 30, 16 << 30)  # (free, total) bytes; verl only prints them


def _device_module() -> Any:
    """What verl expects of torch.cuda, for the host."""
    module: Any = types.ModuleType("envace.training.cpu_backend.torch_device")
    for name in ("set_device", "synchronize", "empty_cache", "reset_peak_memory_stats"):
        setattr(module, name, lambda *args, **kwargs: None)
    for name in ("max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved"):
        setattr(module, name, lambda *args, **kwargs: 0)
    module.is_available = lambda: True
    module.device_count = lambda: 1
    module.current_device = lambda: torch.device("cpu")
    module.manual_seed = module.manual_seed_all = torch.manual_seed
    module.get_rng_state = lambda *args, **kwargs: torch.get_rng_state()
    module.set_rng_state = lambda state, *args, **kwargs: torch.set_rng_state(state)
    module.mem_get_info = lambda *args, **kwargs: _HOST_MEMORY
    module.get_device_name = lambda *args, **kwargs: "cpu"
    module.is_bf16_supported = lambda: True
    return module


@PlatformRegistry.register(platform="cpu")
class CpuPlatform(PlatformBase):
    """The host as verl's accelerator."""

    device_name = "cpu"  # type: ignore[assignment]
    vendor_name = "cpu"  # type: ignore[assignment]
    _module = _device_module()

    @property
    def device_module(self) -> Any:
        """The torch.cuda stand-in."""
        return self._module

    def is_available(self) -> bool:
        """Always."""
        return True

    def current_device(self) -> Any:
        """The device callers pass to `.to(...)`."""
        return torch.device("cpu")

    def device_count(self) -> int:
        """One."""
        return 1

    def set_device(self, device_index: Any) -> None:
        """Nothing to choose."""

    def synchronize(self, device_index: Any = None) -> None:
        """Nothing runs asynchronously."""

    def manual_seed(self, seed: int) -> None:
        """Seed torch."""
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Seed torch."""
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: Any) -> None:
        """No device allocator."""

    def empty_cache(self) -> None:
        """No device cache."""

    def get_device_capability(self, device_index: int = 0) -> Any:
        """None: not a CUDA device."""
        return None, None

    def communication_backend_name(self) -> str:
        """Collectives on the host."""
        return "gloo"

    def visible_devices_envvar(self) -> str:
        """The variable Ray sets for its logical GPUs; nothing here reads it."""
        return "CUDA_VISIBLE_DEVICES"

    def ray_resource_name(self) -> str:
        """One logical GPU a trainer process (`ray_init.num_gpus`); no device is touched."""
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        """Keeps Ray from hiding devices."""
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self) -> bool:
        """No device memory to share."""
        return False

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        """No device profiler."""
        yield

    def profiler_start(self) -> None:
        """No device profiler."""

    def profiler_stop(self) -> None:
        """No device profiler."""

    def cudart(self) -> Any:
        """None: no CUDA runtime."""
        return None
