"""A package that is not installed, told as what it is: no bug, and something to be done about it."""

from __future__ import annotations

INSTALL = "`pip install --no-deps -r constraints/cpu.txt`"

_OURS = ("envace", "flows", "pipeline_steps")
_EXTRAS = {
    "verl": "training needs it",
    "ray": "training needs it",
    "transfer_queue": "training needs it",
    "tensordict": "training needs it",
    "torch": "every stage that runs a policy needs it",
    "transformers": "every stage that runs a policy needs it",
    "prefect": "flows need it",
    "mlflow": "tracking and registration need it",
    "dvc": "`envace run` needs it",
    "great_expectations": "validation needs it",
}


def missing_package(error: ModuleNotFoundError) -> str | None:
    """What is not installed, who needs it, and what to do; None where it is a module of this project (a bug)."""
    name = (error.name or "").split(".")[0]
    if not name or name in _OURS:
        return None
    why = f", and {_EXTRAS[name]}" if name in _EXTRAS else ""
    return (
        f"the Python package {name} is not installed{why}. Install what is pinned with {INSTALL}, or set up .venv anew "
        "with `make clean-env run`"
    )
