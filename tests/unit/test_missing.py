"""Without a package that a command or a stage needs: one line that names it and says what to do, no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from envace.missing import INSTALL, missing_package

# None in sys.modules is what an import of something that is not installed meets, but for the name: a finder gives both
WITHOUT = """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Gone())
"""


@pytest.mark.parametrize(
    ("package", "start", "said"),
    [
        ("prefect", "from flows.cli import main; sys.argv = ['envace', 'run']; main()", "envace: the Python package"),
        (
            "great_expectations",
            "from envace.stage import stage_main; stage_main('x', lambda p: __import__('great_expectations'))",
            "x: the Python package",
        ),
    ],
)
def test_a_missing_package_is_told_in_one_line(
    package: str, start: str, said: str, tmp_path: Path, project_root: Path
) -> None:
    for name in ("params.yaml", "dvc.yaml"):
        (tmp_path / name).write_bytes((project_root / name).read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(package=package) + start],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr, done.stderr
    assert f"{said} {package} is not installed" in done.stderr and INSTALL in done.stderr


def test_a_module_of_this_project_that_is_gone_is_a_bug() -> None:
    assert missing_package(ModuleNotFoundError("No module named 'envace.x'", name="envace.x")) is None
    assert missing_package(ModuleNotFoundError("odd")) is None


def test_what_is_to_be_installed_exists(project_root: Path) -> None:
    assert (project_root / INSTALL.strip("`").split()[-1]).is_file()
