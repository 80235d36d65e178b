"""Commands that keep things under `.envace`: refused outside a project's root, where they would make an empty one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from envace.errors import ConfigError

MARKS = ("params.yaml", "dvc.yaml")


def in_project(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command, after `require_project`; its words and options on the command line stay as they are."""

    @wraps(command)
    def checked(*args: Any, **options: Any) -> Any:
        require_project()
        return command(*args, **options)

    return checked


def require_project(root: Path = Path()) -> None:
    """Raises ConfigError where `root` is not a project's root folder."""
    missing = [name for name in MARKS if not (root / name).is_file()]
    if missing:
        raise ConfigError(
            f"{root.resolve()}: not a project's root (no {' and no '.join(missing)}); change to the project's "
            "folder and give the command again"
        )
