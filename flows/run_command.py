"""`envace run`: what is asked for, from words on the command line."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def run(
    force: Annotated[list[str] | None, typer.Option(help="A stage to run even if nothing changed; repeatable.")] = None,
    name: Annotated[
        str | None, typer.Option(help="Work in a git worktree of its own and keep the run on branch runs/NAME.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Merge a profile over params.yaml, in a worktree (see `envace profile list`).")
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a parameter, in a worktree; repeatable.")
    ] = None,
) -> None:
    """Bring every stage up to date: from raw data to a registered, evaluated policy and its report."""
    from flows.run import RunRequest, run_pipeline

    run_pipeline(RunRequest(force or [], name, profile, dict(map(_parsed, values or []))))


def _parsed(text: str) -> tuple[str, Any]:
    """("train_policy.steps", 5) of "train_policy.steps=5"; what follows the first = is YAML, as in params.yaml."""
    from envace.errors import ConfigError
    from envace.strict_yaml import NotPlainYamlError, parse_plain_yaml

    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ConfigError(f"--set {text}: write KEY=VALUE, for example --set train_policy.steps=5")
    try:
        return key.strip(), parse_plain_yaml(value)
    except NotPlainYamlError:
        # the value itself is not repeated, nor YAML's excerpt of it: it may be a secret in the wrong place
        raise ConfigError(f"--set {key}: what follows the = is not YAML; quote it if it is a text") from None
