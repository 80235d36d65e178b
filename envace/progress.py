"""How far long work has come: a bar on a terminal, now and then a line elsewhere. On stderr, never in a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

Report = Callable[[int, int], None]
"""Called with what is done and the total, in the same unit; total 0 where it is not known."""
LINE_EVERY_S = 10.0
"""Where nobody watches a bar (a pipe, a log), a line is written at most this often; short work writes none."""


@contextmanager
def progress(what: str, unit: str = "B") -> Iterator[Report]:
    """Show the progress of `what` while the block runs; call what it gives as often as you like.

    `unit` is "B" for bytes or a word for what is counted.
    """
    shown = _bar(what, unit) if sys.stderr.isatty() else _lines(what, unit)
    next(shown)
    try:
        yield lambda done, total: shown.send((done, total))
    finally:
        shown.close()


def _bar(what: str, unit: str) -> Generator[None, tuple[int, int], None]:
    from tqdm import tqdm

    with tqdm(desc=what, unit=unit, unit_scale=True, file=sys.stderr, leave=False, dynamic_ncols=True) as bar:
        while True:
            done, total = yield
            bar.total = total or None
            bar.update(done - bar.n)


def _lines(what: str, unit: str) -> Generator[None, tuple[int, int], None]:
    due = time.monotonic() + LINE_EVERY_S
    while True:
        done, total = yield
        if time.monotonic() >= due:
            due = time.monotonic() + LINE_EVERY_S
            print(f"{what}: {_amount(done, unit)}{_share(done, total, unit)}", file=sys.stderr, flush=True)


def _share(done: int, total: int, unit: str) -> str:
    return f" of {_amount(total, unit)} ({100 * done // total} %)" if total else ""


def _amount(count: int, unit: str) -> str:
    return f"{count / 1e6:.1f} MB" if unit == "B" else f"{count} {unit}"
