"""Seeded faults of whole files and runs: checks 1 to 5, 17, 19, 30, 34 to 38, which no single decoded row can show."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envace.config import Params
from envace.data.checks import CHECKS, Violation
from envace.data.checks.run_level import FileCounts, check_run
from envace.data.drift import compare, warnings
from envace.data.preparation import place_rows
from envace.data.splits import check_split_sizes
from envace.data.validation import validate_files
from envace.data.violation_table import read_violations
from envace.errors import ContractError, DataError, EnvaceError
from envace.files import sha256_text
from tests.unit.data.spoiling import RawRow

ONE_ERROR = '{"error": "down"}'
SHA = "0123456789abcdef0123456789abcdef01234567"
OWN = {"source": "sample"}


@dataclass(frozen=True)
class Bench:
    """60 clean rows, and what validates them after they were spoiled."""

    folder: Path
    params: Params
    rows: list[RawRow]

    def lines(self, spoil: Callable[[RawRow], object] = lambda _: None) -> list[str]:
        """The rows as JSON lines, each spoiled alike."""
        made = deepcopy(self.rows)
        for row in made:
            spoil(row)
        return [json.dumps(row) for row in made]

    def validate(
        self, train: list[str], heldout: list[str] | None = None, source: dict[str, Any] = OWN, **bounds: Any
    ) -> list[Violation]:
        """All findings of a run, on rows and on files."""
        files = {"train": train} if heldout is None else {"train": train, "heldout": heldout}
        paths: dict[str, list[Path]] = {}
        for split, lines in files.items():
            paths[split] = [self.folder / f"{split}.jsonl"]
            paths[split][0].write_text("\n".join(lines) + "\n", encoding="utf-8")
        params = self.params.validate_data.model_copy(update=bounds)
        run = validate_files(paths, params, self.folder / "out", source)
        return [*read_violations(self.folder / "out/violations.parquet"), *run.failures, *run.warnings]


@dataclass(frozen=True)
class RunFault:
    """One fault of a run: how it comes about, and the file, row (-1: the file as a whole) and place that are named.

    Findings of the same check on single rows may come with it: a file of too many errors has errors.
    """

    check: int
    severity: str
    name: str
    find: Callable[[Bench], list[Violation]]
    places: tuple[tuple[str, int, str], ...] = (("train", -1, ""),)

    @property
    def flag(self) -> str:
        """What it puts on the task."""
        return CHECKS[self.check].flag if self.severity == "W" else ""


@dataclass(frozen=True)
class Stop:
    """A fault that stops the run at once, with a message that tells what is wrong."""

    check: int
    name: str
    run: Callable[[Bench], object]
    message: str
    error: type[EnvaceError] = DataError
    severity: str = field(default="F", init=False)


def _recorded(bench: Bench, **wrong: Any) -> list[Violation]:
    text = "\n".join(bench.lines()) + "\n"
    record = {"rows": len(bench.rows), "bytes": len(text.encode()), "sha256": sha256_text(text), **wrong}
    return bench.validate(bench.lines(), source={**OWN, "files": {"train.jsonl": record}})


def _from(bench: Bench, **source: Any) -> list[Violation]:
    hub = {"source": "hub", "repository": "owner/name", "revision": SHA, "licence": "CC-BY-4.0"}
    return bench.validate(bench.lines(), source={**hub, **source})


def _line(bench: Bench, line: str, at: int = 7, **bounds: Any) -> list[Violation]:
    lines = bench.lines()
    lines[at] = line
    return bench.validate(lines, **bounds)


def _all_errors(row: RawRow) -> None:
    for message in row["messages"]:
        if message["role"] == "tool":
            message["content"] = ONE_ERROR
    for entry in _evidence(row):
        if entry["from"] == "tool.content":
            entry["snippet"] = ONE_ERROR


def _nowhere(row: RawRow) -> None:
    for entry in _evidence(row):
        entry["snippet"] = "nowhere to be found"


def _evidence(row: RawRow) -> list[dict[str, Any]]:
    return [entry for items in row["checklists"][0] for item in items for entry in item["evidence"]]


def _again(bench: Bench, say: str = "", answer: str | None = None) -> list[str]:
    """A row with a call, and the same under another id, with more said or another answer."""
    roles = ["user", "assistant", "tool", "assistant"]
    row = next(row for row in bench.rows if [message["role"] for message in row["messages"]] == roles)
    made = deepcopy(row)
    made["uuid"] = "11111111-2222-3333-4444-555555555555"
    made["messages"][0]["content"] += say
    if answer is not None:
        for entry in _evidence(made):
            entry["snippet"] = answer if entry["from"] == "tool.content" else entry["snippet"]
        made["messages"][2]["content"] = answer
    return [json.dumps(row), json.dumps(made)]


def _with_first_uuid(bench: Bench) -> str:
    return json.dumps({**bench.rows[7], "uuid": bench.rows[0]["uuid"]})


def _uuid_in_two_files(bench: Bench) -> list[Violation]:
    return bench.validate(bench.lines()[:7], [bench.lines()[8], _with_first_uuid(bench)])


def _counted(bench: Bench, **counts: Any) -> list[Violation]:
    return check_run({"train": FileCounts(**counts)}, bench.params.validate_data)


def _drifted(bench: Bench, **now: Any) -> list[Violation]:
    then = {"rows": 9, **{n: {"mean": 2.0} for n in ("turns", "tools", "items")}, "focus_mix": {"reply": 0.5}}
    accepted, profile = ({"dataset": "a", "files": {"train": train}} for train in (then, {**then, **now}))
    return warnings(compare(profile, accepted, bench.params.validate_data.max_drift))


def _leak(bench: Bench) -> object:
    files = {}
    for split in ("train", "heldout"):
        row = {**json.loads(bench.lines()[0]), "uuid": f"00000000-0000-4000-8000-0000000000{len(files):02}"}
        files[split] = [bench.folder / f"raw-{split}.jsonl"]
        files[split][0].write_text(json.dumps(row) + "\n", encoding="utf-8")
    validate_files(files, bench.params.validate_data, bench.folder / "kept", OWN)
    return place_rows(bench.folder / "kept", bench.params.prepare_data)


def _bytes(bench: Bench, content: bytes) -> object:
    path = bench.folder / "train.json"
    path.write_bytes(content)
    return validate_files({"train": [path]}, bench.params.validate_data, bench.folder / "out", OWN)


RUN_FAULTS: tuple[RunFault, ...] = (
    RunFault(1, "F", "other size", lambda b: _recorded(b, bytes=1)),
    RunFault(1, "F", "other bytes", lambda b: _recorded(b, sha256="0" * 64)),
    RunFault(
        2,
        "F",
        "unknown column",
        lambda b: b.validate(b.lines(lambda r: r.update(colour=1))),
        (("train", -1, "/colour"),),
    ),
    RunFault(2, "F", "too few rows", lambda b: b.validate(b.lines(), min_rows=61)),
    RunFault(2, "F", "too many rows", lambda b: b.validate(b.lines(), max_rows=59)),
    RunFault(2, "F", "no rows", lambda b: _counted(b)),
    RunFault(3, "F", "no repository", lambda b: _from(b, repository=None), (("", -1, "/repository"),)),
    RunFault(3, "F", "revision is a branch", lambda b: _from(b, revision="main"), (("", -1, "/revision"),)),
    RunFault(3, "F", "licence not allowed", lambda b: _from(b, licence="all mine"), (("", -1, "/licence"),)),
    RunFault(
        3, "W", "licence of a file not stated", lambda b: _from(b, source="file", licence=None), (("", -1, "/licence"),)
    ),
    RunFault(4, "R", "uuid twice", lambda b: _line(b, _with_first_uuid(b)), (("train", 7, "/uuid"),)),
    RunFault(4, "R", "uuid in two files", _uuid_in_two_files, (("heldout", 1, "/uuid"),)),
    RunFault(5, "R", "key twice", lambda b: _line(b, '{"uuid": "a", "uuid": "b"}'), (("train", 7, ""),)),
    RunFault(5, "R", "NaN", lambda b: _line(b, b.lines()[7].replace("0.", 'NaN, "was": 0.', 1)), (("train", 7, ""),)),
    RunFault(5, "R", "infinity", lambda b: _line(b, '{"uuid": -Infinity}'), (("train", 7, ""),)),
    RunFault(5, "R", "row is a list", lambda b: _line(b, "[]"), (("train", 7, ""),)),
    RunFault(
        5,
        "R",
        "nested 10,000 deep",
        lambda b: _line(b, '{"uuid": ' + "[" * 10_000 + "]" * 10_000 + "}"),
        (("train", 7, ""),),
    ),
    RunFault(17, "F", "too many errors", lambda b: b.validate(b.lines(_all_errors))),
    RunFault(
        19,
        "W",
        "other answer to the same call",
        lambda b: b.validate(_again(b, say=" Please.", answer='{"other": 1}')),
        (("train", 0, "/messages/2/content"), ("train", 1, "/messages/2/content")),
    ),
    RunFault(30, "F", "too much evidence not found", lambda b: b.validate(b.lines(_nowhere))),
    RunFault(
        34,
        "R",
        "row too long to read",
        lambda b: _line(b, '{"uuid": "' + "x" * 20_000 + '"}', max_row_bytes=20_000),
        (("train", 7, ""),),
    ),
    RunFault(35, "R", "row twice", lambda b: b.validate(_again(b)), (("train", 1, ""),)),
    RunFault(37, "F", "row lost", lambda b: _counted(b, rows=10, kept=9)),
    RunFault(37, "F", "no reason", lambda b: _counted(b, rows=40, kept=39, quarantined=1, without_reason=1)),
    RunFault(37, "F", "nothing kept", lambda b: _counted(b, rows=3, quarantined=3)),
    RunFault(37, "F", "too many rejected", lambda b: _counted(b, rows=100, kept=94, quarantined=6)),
    RunFault(38, "W", "more turns", lambda b: _drifted(b, turns={"mean": 2.6})),
    RunFault(38, "W", "fewer tools", lambda b: _drifted(b, tools={"mean": 1.4})),
    RunFault(38, "W", "fewer items", lambda b: _drifted(b, items={"mean": 0.0})),
    RunFault(38, "W", "other mix", lambda b: _drifted(b, focus_mix={"reply": 0.3})),
)
STOPS: tuple[Stop, ...] = (
    Stop(1, "file cut short", lambda b: _bytes(b, b'[{"uuid": "a"'), "train.json"),
    Stop(1, "file is not UTF-8", lambda b: _bytes(b, b'[{"uuid": "\xff"}]'), "UTF-8"),
    Stop(1, "file is empty", lambda b: _bytes(b, b""), "empty"),
    Stop(35, "conversation in two splits", _leak, r"check 35", ContractError),
    Stop(
        36,
        "split of another size",
        lambda b: check_split_sizes({"train": 7350, "validation": 1150, "heldout": 1500}, 0.15, b.params.prepare_data),
        "check 36",
        ContractError,
    ),
)
