"""The text of a profile, also of the shipped one after params.yaml was replaced: git still has it."""

from __future__ import annotations

from pathlib import Path

from envace.errors import ConfigError, StageError
from envace.profiles import SHIPPED, profile_names, profile_path
from envace.strict_yaml import NotPlainYamlError, parse_plain_yaml
from flows.git import git

PARAMS = "params.yaml"


def profile_text(root: Path, name: str) -> str:
    """Word for word. Raises ConfigError for an unknown profile, or where the shipped one is nowhere to be found."""
    path = profile_path(name, root / "profiles")
    text = read_text(path)
    if name != SHIPPED or profile_of(text) == SHIPPED:
        return text
    try:
        commits = git(root, "log", "--format=%H", "--", PARAMS).splitlines()
    except StageError:
        commits = []
    for commit in commits:
        text = git(root, "show", f"{commit}:{PARAMS}") + "\n"
        if profile_of(text) == SHIPPED:
            return text
    raise ConfigError(f"profile {name!r}: {PARAMS} holds another one, and no earlier version of it is in git")


def profile_of(text: str) -> str | None:
    """The name that a params file gives itself; None where it is not readable."""
    try:
        decoded = parse_plain_yaml(text)
    except NotPlainYamlError:
        return None
    return decoded.get("profile") if isinstance(decoded, dict) else None


def is_a_profile(root: Path, text: str) -> bool:
    """Whether a text is a profile of this project word for word, so that nothing is lost with it."""
    names = (name for name in profile_names(root / "profiles") if name != SHIPPED)
    return any(read_text(profile_path(name, root / "profiles")) == text for name in names)


def read_text(path: Path) -> str:
    """Raises ConfigError where there is no readable file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not readable ({error}); run from the project's root") from None
