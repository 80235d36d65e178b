"""Makes the venv of a harness, once: exact versions from its requirements file, and a stamp that says they are in."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from envace.benchmarks.harness import Benchmark
from envace.errors import BenchmarkError
from envace.files import sha256_text, write_text
from envace.locks import held
from envace.quiet import be_quiet

VENVS = Path(".envace/venvs")
STAMP = ".installed"
_UNREACHABLE = ("Connection", "Could not find a version", "No matching distribution", "Temporary failure", "timed out")
_SHOWN_LINES = 4


def venv_python(benchmark: Benchmark, root: Path = Path()) -> Path:
    """The interpreter of the harness's venv, whether or not it is there. Absolute, symlinks of the venv kept."""
    return root.absolute() / VENVS / benchmark.name / "bin/python"


def is_installed(benchmark: Benchmark, root: Path = Path()) -> bool:
    """Whether the venv holds exactly what the requirements file says."""
    stamp = venv_python(benchmark, root).parents[1] / STAMP
    known = stamp.is_file() and (root / benchmark.requirements).is_file()
    return known and stamp.read_text(encoding="utf-8") == _pins(benchmark, root)


def installed_python(benchmark: Benchmark, root: Path = Path()) -> Path:
    """The interpreter of an installed harness. Raises BenchmarkError where it is not installed."""
    if not is_installed(benchmark, root):
        raise BenchmarkError(
            f"{benchmark.title} is not installed (or in other versions than {benchmark.requirements} now names); "
            f"run `envace benchmark install {benchmark.name}`"
        )
    return venv_python(benchmark, root)


def install(benchmark: Benchmark, say: Callable[[str], None], root: Path = Path(), *, again: bool = False) -> bool:
    """Make the venv unless it is there. Returns whether there was something to do.

    The requirements are the whole closure, so nothing is resolved. Raises BenchmarkError in pip's own last words.
    """
    with held(f"benchmark-{benchmark.name}", what=f"the venv of {benchmark.title}", wait_s=1.0):
        if is_installed(benchmark, root) and not again:
            return False
        be_quiet()
        python = venv_python(benchmark, root)
        say(f"making {python.parents[1]} for {benchmark.package}=={benchmark.version} (once, some minutes)")
        _command([sys.executable, "-m", "venv", "--clear", str(python.parents[1])], "the venv could not be made")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps"]
        _command([*pip, "-r", str(root / benchmark.requirements)], f"pip could not install {benchmark.requirements}")
        write_text(python.parents[1] / STAMP, _pins(benchmark, root))
    return True


def _pins(benchmark: Benchmark, root: Path) -> str:
    path = root / benchmark.requirements
    if not path.is_file():
        raise BenchmarkError(f"{path} is not there; run this command from the project's root")
    return sha256_text(path.read_text(encoding="utf-8"))


def _command(command: list[str], failed: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode == 0:
        return
    last = "\n".join(done.stdout.strip().splitlines()[-_SHOWN_LINES:])
    hint = ""
    if any(word in done.stdout for word in _UNREACHABLE):
        hint = "\nis the package index reachable? pip's usual settings apply (PIP_INDEX_URL, pip.conf, proxies)"
    raise BenchmarkError(f"{failed}:\n{last}{hint}")
