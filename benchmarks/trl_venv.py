"""Makes TRL's own venv for bench_vs_trl.py, once: pinned, and what both sides use in the versions of cpu.txt."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

TRL = "trl==1.16.0"
BESIDE = ("torch", "transformers", "accelerate", "datasets", "peft", "jmespath", "pydantic", "jsonschema", "regex")


def trl_python(root: Path) -> Path:
    """The interpreter of the venv under `root`/.envace/venvs/trl, made where it is missing or of other pins."""
    folder, constraints = root / ".envace/venvs/trl", root / "constraints/cpu.txt"
    python, stamp = folder / "bin/python", folder / ".installed"
    pins = hashlib.sha256("\n".join([TRL, *BESIDE, constraints.read_text(encoding="utf-8")]).encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == pins:
        return python
    print(f"making {folder} for {TRL} (once, some minutes)", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(python), "-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check", "--no-compile"]
    torch = next(x for x in constraints.read_text(encoding="utf-8").splitlines() if x.startswith("torch=="))
    subprocess.run(
        [*pip, torch], check=True
    )  # first and alone: a plain install takes a CPU build where one is configured
    subprocess.run([*pip, "-c", str(constraints), TRL, *BESIDE], check=True)
    stamp.write_text(pins)
    return python
