"""`envace rollout show`: the two-role transcripts of recorded rollouts, with the advantages of their groups."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.data_commands import told_errors

rollout_app = typer.Typer(help="Rollouts that training and evaluation recorded.", no_args_is_help=True)


@rollout_app.callback()
def _rollout() -> None:
    pass  # keeps `show` a command of its own while it is the only one


@rollout_app.command()
def show(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A rollouts.parquet; else that of training (unfinished: its records), else that of evaluation."
        ),
    ] = None,
    task: Annotated[str | None, typer.Option(help="Only this task; the beginning of its id is enough.")] = None,
    step: Annotated[int | None, typer.Option(help="Only this training step; else the last one there is.")] = None,
    phase: Annotated[Literal["train", "validation"] | None, typer.Option(help="Only this phase.")] = None,
    policy: Annotated[str | None, typer.Option(help="Only this evaluated policy, for example trained.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most rollouts to show; the others are counted.")] = 4,
) -> None:
    """Print rollouts group by group (one task in one step), the groups with the widest spread of rewards first.

    Training rollouts come with the advantage of each role, computed from the recorded rewards as the trainer does.
    """
    with told_errors():
        from envace.report.recorded import Choice, choose, params_of_project, recorded_rows, rollouts_file
        from envace.report.unfinished import told

        path = file or rollouts_file(Path(), policy)
        rows = recorded_rows(path)
        groups = choose(rows, Choice(task, step, phase, policy), path)
        advantage = params_of_project(Path())
    from envace.algo.recorded import group_figures
    from envace.report.terminal import print_group, print_rollout, terminal

    console, left = terminal(), limit
    if path.is_dir():
        console.print(told(path, rows))
    for members in groups:
        if left <= 0:
            break
        figures = group_figures(members, **advantage) if members[0].get("phase") == "train" else None
        for index, row in enumerate(members[:left]):
            print_rollout(console, row, figures=figures[index] if figures else None)
            console.print()
        if figures and len(members) > 1:
            print_group(console, members, figures)
        left -= len(members)
    total = sum(map(len, groups))
    if total > limit:
        console.print(f"{total - limit} more of {path} fit; --limit shows more, --task and --step choose")
