"""The backend that params name is the backend of a training's processes, whatever GPUs the machine has."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envace.training.cpu_backend import BACKEND_VARIABLE, is_wanted
from envace.training.launch import environment

SHOW = """
import warnings
warnings.simplefilter("ignore")
import envace.training.plugins as plugins
from verl.plugin.platform import get_platform
plugins.check_registered()
import torch
print(plugins.CPU_BACKEND_ACTIVE, get_platform().device_name, torch.cuda.is_available())
"""


@pytest.fixture
def machine(plugins: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes this a machine with a GPU or without one, as far as nvidia-smi says; no training's variable is set.

    After `plugins`: in this process verl is loaded as the machine really is.
    """
    monkeypatch.delenv(BACKEND_VARIABLE, raising=False)

    def make(gpu: str) -> None:
        command = tmp_path / "nvidia-smi"
        listing = f"echo 'GPU 0: NVIDIA H200 (UUID: GPU-{gpu})'" if gpu else "exit 9"
        command.write_text(f"#!/bin/sh\n{listing}\n")
        command.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    return make


@pytest.mark.parametrize(
    ("gpu", "backend", "wanted"),
    [
        ("0", "cpu", True),
        ("0", "cuda", False),
        ("0", None, False),
        ("", "cpu", True),
        ("", "cuda", False),
        ("", None, True),
    ],
)
def test_the_cpu_backend_is_active_where_params_say_so(
    machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, gpu: str, backend: str | None, wanted: bool
) -> None:
    machine(gpu)
    if backend:
        monkeypatch.setenv(BACKEND_VARIABLE, environment(backend)[BACKEND_VARIABLE])
    assert is_wanted() is wanted


def test_a_training_on_the_cpu_hides_the_gpus_and_one_on_gpus_does_not() -> None:
    """-1 is a device to Ray, which would refuse its logical GPU otherwise, and none to CUDA."""
    assert environment("cpu")["CUDA_VISIBLE_DEVICES"] == "-1"
    assert "CUDA_VISIBLE_DEVICES" not in environment("cuda")


def test_verl_computes_on_the_cpu_of_a_machine_with_a_gpu(machine: Callable[[str], None]) -> None:
    machine("0")
    variables = {**os.environ, **environment("cpu")}
    shown = subprocess.run([sys.executable, "-c", SHOW], env=variables, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.split()[-3:] == ["True", "cpu", "False"]
