"""The venv of a harness: made once for its pins, made anew for others, and a failure of pip told in its own words."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from envace.benchmarks import install as module
from envace.benchmarks.harness import Benchmark, benchmark_names, find_benchmark
from envace.benchmarks.install import install, installed_python, is_installed, venv_python
from envace.errors import BenchmarkError, ConfigError
from tests.conftest import ROOT
from tests.unit.benchmarks.fake_harness import fake_benchmark


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    """Not installed yet; in a project of its own."""
    made = fake_benchmark(tmp_path)
    (tmp_path / ".envace/venvs/fake/.installed").unlink()
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What is run instead of being run."""
    ran: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        return subprocess.CompletedProcess(command, 0, "")

    monkeypatch.setattr(module.subprocess, "run", run)
    return ran


def test_it_is_made_once_without_resolving_anything(fake: Benchmark, commands: list[list[str]]) -> None:
    said: list[str] = []
    assert not is_installed(fake)
    assert install(fake, said.append)
    assert is_installed(fake) and installed_python(fake) == venv_python(fake)
    assert "--no-deps" in commands[1] and commands[1][-1] == "harnesses/fake/requirements.txt"
    assert "fake==1" in said[0]
    assert not install(fake, said.append)
    assert len(commands) == 2


def test_other_pins_make_it_anew(fake: Benchmark, commands: list[list[str]]) -> None:
    install(fake, print)
    fake.requirements.write_text("fake==2\n", encoding="utf-8")
    assert not is_installed(fake)
    assert install(fake, print)
    assert len(commands) == 4


def test_an_index_that_cannot_be_reached_is_named_and_leaves_no_stamp(
    fake: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        words = "WARNING: Retrying\nERROR: Could not find a version that satisfies the requirement fake==1"
        return subprocess.CompletedProcess(command, "pip" in command, words)

    monkeypatch.setattr(module.subprocess, "run", run)
    with pytest.raises(BenchmarkError, match=r"(?s)could not install .*fake==1\nis the package index reachable"):
        install(fake, print)
    assert not is_installed(fake)


@pytest.mark.parametrize("name", benchmark_names())
def test_every_harness_has_its_driver_and_exact_pins(name: str) -> None:
    benchmark = find_benchmark(name)
    assert (ROOT / benchmark.folder / benchmark.driver).is_file()
    pins = (ROOT / benchmark.requirements).read_text(encoding="utf-8").splitlines()
    lines = [line for line in pins if line and not line.startswith("#")]
    assert all("==" in line for line in lines)
    wanted = f"{benchmark.package}=={benchmark.version}".replace("-", "_")
    assert wanted in {line.replace("-", "_") for line in lines}


def test_an_unknown_harness_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigError, match="bfcl"):
        find_benchmark("swe-bench")
