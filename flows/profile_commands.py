"""`envace profile ...`: which profiles there are, and taking one over as params.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

profile_app = typer.Typer(help="Whole params files for other models and machines.", no_args_is_help=True)


@profile_app.command("list")
def list_profiles() -> None:
    """Name every profile; a star marks the one that params.yaml holds."""
    from envace.profiles import profile_names, unfilled
    from envace.strict_yaml import parse_plain_yaml
    from flows.profile_files import PARAMS, profile_of, profile_text, read_text

    here = profile_of(read_text(Path(PARAMS)))
    for name in profile_names(Path("profiles")):
        missing = len(unfilled(parse_plain_yaml(profile_text(Path(), name))))
        note = f"   {missing} values to fill in" if missing else ""
        typer.echo(f"{'*' if name == here else ' '} {name}{note}")


@profile_app.command()
def use(name: Annotated[str, typer.Argument(help="A name that `envace profile list` shows.")]) -> None:
    """Replace params.yaml by a profile. Refused where params.yaml has edits that are not committed."""
    from envace.errors import ConfigError
    from envace.files import write_text
    from envace.profiles import unfilled
    from envace.strict_yaml import parse_plain_yaml
    from flows.git import require_repository, uncommitted
    from flows.profile_files import PARAMS, is_a_profile, profile_text, read_text

    text = profile_text(Path(), name)
    require_repository(Path())
    if uncommitted(Path(), PARAMS) and not is_a_profile(Path(), read_text(Path(PARAMS))):
        raise ConfigError(
            f"{PARAMS} has edits that are not committed and would be lost; commit them, or undo them with "
            f"`git checkout {PARAMS}`"
        )
    write_text(Path(PARAMS), text)
    typer.echo(f"{PARAMS}: profile {name}")
    for key, wanted in unfilled(parse_plain_yaml(text)).items():
        typer.echo(f"  fill in {key}: {wanted}")
