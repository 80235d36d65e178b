"""`envace data ...`: make a sample file, print the raw format's schema, tell what is wrong with a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from envace.errors import EnvaceError

if TYPE_CHECKING:
    from envace.progress import Report

data_app = typer.Typer(help="Data in CM2's raw schema: make some, describe it, check it.", no_args_is_help=True)


@data_app.callback()
def _data() -> None:
    # data and names of files may hold what the terminal's encoding cannot say
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def told_errors(code: int = 2) -> Iterator[None]:
    """One message on stderr and an exit code instead of a traceback; SIGTERM unwinds, so that no part file stays."""
    from envace.processes import unwind_on_signals

    unwind_on_signals(last_resort_s=10)
    try:
        yield
    except EnvaceError as error:
        print(f"envace: {error}", file=sys.stderr)
        raise typer.Exit(code) from None


@data_app.command()
def sample(
    rows: Annotated[int, typer.Option(min=1, help="How many rows.")],
    out: Annotated[Path, typer.Option(help="The file: .json or .jsonl, .gz behind it packs it.")],
    row_bytes: Annotated[
        int | None, typer.Option(help="Mean size of a row as indented JSON (40000 to 100000); else short rows.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    partition: Annotated[
        Literal["train", "heldout", "hard"], typer.Option(help="The three share no user message.")
    ] = "train",
    faulty_share: Annotated[float, typer.Option(min=0, max=1, help="Share of rows with a seeded fault.")] = 0.0,
) -> None:
    """Write sample conversations with true tool results: many and large ones too, for trying out sizes."""
    with told_errors():
        from envace.data.sample.rows import stream_rows
        from envace.data.sample.world import build_world
        from envace.data.sample.writing import write_rows
        from envace.progress import progress

        made = stream_rows(build_world(seed), rows, seed, partition, row_bytes, faulty_share)
        with progress(f"writing {out.name}", "rows") as report:
            write_rows(out, _counted(made, rows, report))
    print(f"{out}: {rows} rows, {out.stat().st_size} bytes")


@data_app.command()
def schema() -> None:
    """Print the JSON Schema (Draft 2020-12) of one raw row."""
    from envace.data.raw_schema import raw_row_schema

    print(json.dumps(raw_row_schema(), ensure_ascii=False, indent=2))


@data_app.command()
def check(
    file: Annotated[Path, typer.Argument(help="A raw file: JSON array, JSON lines, either packed, or Parquet.")],
    limit: Annotated[int, typer.Option(min=0, help="Findings to show; the others are counted.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Tell what is wrong with a file, row by row, and what to do. Changes nothing.

    Exit code 0: every row would be kept. 1: rows would be rejected, or the run would fail. 2: the file is unreadable.
    """
    with told_errors():
        from envace.data.file_check import check_file, params_in_force

        params, bounds = params_in_force(Path())
        outcome = check_file(file, params.validate_data, limit, params.fetch_data.licence)
    if as_json:
        print(json.dumps({"file": str(file), "bounds": bounds, **asdict(outcome)}, ensure_ascii=False, indent=2))
    else:
        from flows.check_table import print_check

        print_check(str(file), outcome, bounds)
    raise typer.Exit(0 if outcome.all_kept else 1)


def _counted(rows: Iterator[dict[str, Any]], total: int, report: Report) -> Iterator[dict[str, Any]]:
    for done, row in enumerate(rows, start=1):
        yield row
        report(done, total)
