"""Hostile files: a clear error or a quarantined row that names the place, in bounded memory, and nothing outside.

Each is fetched and validated in a process of its own, as the stages do it; the bounds are those of goals S5 and S6.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from envace.data.sample.rows import sample_rows
from envace.data.sample.world import build_world

MAX_PEAK_MB = 500
MB = 1_000_000
CHILD = """
from pathlib import Path
from envace.stage import stage_main

def run(params):
    from envace.data.fetching import raw_files
    from envace.data.validation import validate_files
    from envace.files import read_json
    from pipeline_steps.fetch_data import RAW, run as fetch

    fetch(params)
    source = read_json(RAW / "source.json")
    result = validate_files(raw_files(RAW), params.validate_data, Path("data/validated"), source)
    for name, counts in result.files.items():
        assert counts.rows == counts.kept + counts.quarantined and not counts.without_reason, name

def peak():
    # not ru_maxrss, which a child takes over from the process that starts it
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))

try:
    stage_main("fetch_data", run)
finally:
    print(f"peak {peak()}")
"""


class Project:
    """A folder with params.yaml and one raw file, and what became of it."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root, self._folder = root, folder
        self.project = folder / "project"
        self.project.mkdir()
        self.params: dict[str, Any] = yaml.safe_load((root / "params.yaml").read_text(encoding="utf-8"))
        self.error = ""

    def take(self, given: str | Path, params_text: str | None = None) -> list[dict[str, Any]]:
        """Fetch and validate; the quarantined rows. `error` has what was said on stderr."""
        self.params["fetch_data"] |= {"source": "file", "train_path": str(given)}
        text = params_text if params_text is not None else json.dumps(self.params)
        (self.project / "params.yaml").write_text(text, encoding="utf-8")
        process = subprocess.run(
            [sys.executable, "-c", CHILD],
            cwd=self.project,
            env={**os.environ, "PYTHONPATH": str(self._root), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.error = process.stderr
        assert "Traceback" not in self.error and process.returncode in (0, 2), self.error
        assert (process.returncode == 2) == bool(self.error), self.error
        assert len(self.error) < 2000
        peak = int(process.stdout.split("peak ")[1]) / 1024
        assert peak <= MAX_PEAK_MB
        written = {path.relative_to(self.project).parts[0] for path in self.project.iterdir()}
        assert written <= {"params.yaml", "data", ".envace"}
        assert {path.name for path in self._folder.iterdir()} <= {"project", "input"}
        if process.returncode:
            assert not (self.project / "data/raw").exists() and not list(self.project.glob("data/.*"))
            return []
        quarantine = (self.project / "data/validated/quarantine.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in quarantine.splitlines()]

    def kept(self) -> int:
        """Rows that passed."""
        return len((self.project / "data/validated/train.jsonl").read_text(encoding="utf-8").splitlines())


@pytest.fixture
def project(project_root: Path, tmp_path: Path) -> Project:
    (tmp_path / "input").mkdir()
    return Project(project_root, tmp_path)


@pytest.fixture
def given(tmp_path: Path) -> Path:
    return tmp_path / "input"


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return sample_rows(build_world(0), 2, 0, "train", 0.0)


GOOD = b'[{"uuid": "a"}]'


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("rows.json", b"", "the file is empty"),
        ("rows.jsonl", b" \n" * MB, "the file is empty"),
        ("rows.json", GOOD[:-1], "ends inside the array"),
        ("rows.json", GOOD[:8], "ends inside the array"),
        ("rows.jsonl", b'{"uuid": "a"}\n{"uuid', "line 2 is cut short"),
        ("rows.json", GOOD.decode().encode("utf-16"), "not UTF-8 but UTF-16"),
        ("rows.json", GOOD.decode().encode("utf-16-le"), "not UTF-8 but UTF-16"),
        ("rows.json", '[{"uuid": "Köln"}]'.encode("latin-1"), "not UTF-8: byte 0xf6 at offset 12"),
        ("rows.json", bytes(range(256)) * 4000, "not UTF-8|neither a JSON array"),
        ("rows.json.gz", gzip.compress(GOOD * 5000)[:-30], "damaged gzip"),
        ("rows.json.gz", b"\x1f\x8b" + b"\0" * 100, "damaged gzip"),
        ("rows.parquet", GOOD, "damaged, or not a Parquet file"),
        ("rows.parquet", b"PAR1" + b"\xff" * 1000 + b"PAR1", "damaged, or not a Parquet file"),
        ("rows.json", b"[" * 10_000, "ends inside the array"),
        ("rows.json", b"[" + b"]" * 10_000, "text after the end of the array"),
    ],
)
def test_a_file_that_is_none_is_one_clear_error(
    project: Project, given: Path, name: str, data: bytes, why: str
) -> None:
    (given / name).write_bytes(data)
    assert project.take(given / name) == []
    pattern = [part for part in why.split("|") if part in project.error]
    assert pattern and str(given / name) in project.error


@pytest.mark.parametrize(("make", "why"), [(Path.mkdir, "this is a folder"), (os.mkfifo, "not a regular file")])
def test_what_is_no_file_is_one_clear_error(
    project: Project, given: Path, make: Callable[[Path], None], why: str
) -> None:
    make(given / "rows.json")
    project.take(given / "rows.json")
    assert why in project.error


def test_a_device_is_one_clear_error(project: Project) -> None:
    for device in ("/dev/null", "/dev/zero"):
        project.take(device)
        assert f"{device} (fetch_data.train_path): not a regular file" in project.error


@pytest.mark.parametrize("name", ["rows.jsonl.gz", "rows.json.gz"])
def test_a_gzip_bomb_is_not_unpacked(project: Project, given: Path, name: str) -> None:
    begin = b'{"uuid": "' if name == "rows.jsonl.gz" else b'[{"uuid": "'
    (given / name).write_bytes(gzip.compress(begin) + gzip.compress(b"x" * MB) * 1000)
    assert (given / name).stat().st_size < 1.1 * MB
    project.take(given / name)
    assert "what begins at line 1 goes on for over" in project.error and str(given / name) in project.error


@pytest.mark.parametrize(
    "piece", [b"x", "é".encode(), "😀".encode(), b'",[{}],"'], ids=["plain", "é", "emoji", "marks"]
)
@pytest.mark.parametrize("layout", ["lines", "array"])
def test_a_row_of_100_mb_is_quarantined_and_the_next_is_read(
    project: Project, given: Path, rows: list[dict[str, Any]], layout: str, piece: bytes
) -> None:
    path = given / ("rows.jsonl" if layout == "lines" else "rows.json")
    before, between, after = (b"", b"\n", b"\n") if layout == "lines" else (b"[", b",\n", b"]")
    with path.open("wb") as file:
        file.write(before + json.dumps(rows[0]).encode() + between + b'{"uuid": ["')
        for _ in range(100):
            file.write(piece * (MB // len(piece)))
        file.write(b'"]}' + between + json.dumps(rows[1]).encode() + after)
    (row,) = project.take(path)
    path.unlink()
    assert [reason["check"] for reason in row["reasons"]] == [34] and row["place"] == "line 2"
    assert project.kept() == 2


BROKEN: dict[str, tuple[str, int, str]] = {
    "nesting of lists": ('{"uuid": ' + "[" * 10_000 + "]" * 10_000 + "}", 5, "nested deeper than 100"),
    "nesting of objects": ('{"uuid": ' + '{"a": ' * 10_000 + "1" + "}" * 10_000 + "}", 5, "nested deeper than 100"),
    "a row that is no object": ("[" * 10_000 + "]" * 10_000, 5, "nested deeper than 100"),
    "repeated keys": ('{"uuid": "a", "uuid": "b"}', 5, "'uuid' stands twice"),
    "repeated keys inside": ('{"uuid": "a", "world": {"seed": 1, "seed": 2}}', 5, "'seed' stands twice"),
    "a number without end": ('{"uuid": ' + "9" * 100_000 + "}", 5, "digits"),
    "not a number": ('{"uuid": NaN}', 5, "NaN is not a number"),
    "a bracket too many": ('{"uuid": "a"}}', 5, "not JSON"),
}


@pytest.mark.parametrize("layout", ["lines", "array"])
def test_broken_rows_are_quarantined_and_the_others_are_read(
    project: Project, given: Path, rows: list[dict[str, Any]], layout: str
) -> None:
    texts = [json.dumps(rows[0]), *(text for text, _, _ in BROKEN.values()), json.dumps(rows[1])]
    path = given / ("rows.jsonl" if layout == "lines" else "rows.json")
    path.write_text("\n".join(texts) + "\n" if layout == "lines" else "[" + ",\n".join(texts) + "]", encoding="utf-8")
    found = project.take(path)
    assert [(row["place"], row["reasons"][0]["check"]) for row in found] == [
        (f"line {2 + index}", check) for index, (_, check, _) in enumerate(BROKEN.values())
    ]
    for row, (_, _, why) in zip(found, BROKEN.values(), strict=True):
        assert why in row["reasons"][0]["detail"]
    assert project.kept() == 2


@pytest.mark.parametrize("text", ["\ud83d", "a\0b", "\uffff"], ids=["lone surrogate", "NUL", "non-character"])
def test_text_that_no_file_can_hold_is_quarantined(
    project: Project, given: Path, rows: list[dict[str, Any]], text: str
) -> None:
    """inspect_ai#3802: a lone surrogate crashes whatever writes it."""
    bad = json.loads(json.dumps(rows[0]))
    next(message for message in bad["messages"] if message["role"] == "user")["content"] = f"Hello {text}"
    (given / "rows.json").write_text(json.dumps([bad, rows[1]]), encoding="utf-8")
    (row,) = project.take(given / "rows.json")
    assert 11 in [reason["check"] for reason in row["reasons"]] and row["row_index"] == 0
    assert project.kept() == 1


@pytest.mark.parametrize("uuid", ["../../outside", "/tmp/outside", "..", "a/b", "a\\b", "a\0b", "a\nb", "\ud83d"])
def test_ids_that_lead_out_of_a_folder_are_quarantined(
    project: Project, given: Path, rows: list[dict[str, Any]], uuid: str
) -> None:
    (given / "rows.json").write_text(json.dumps([{**rows[0], "uuid": uuid}, rows[1]]), encoding="utf-8")
    (row,) = project.take(given / "rows.json")
    assert {reason["check"] for reason in row["reasons"]} & {4, 11}
    assert project.kept() == 1


def _bomb() -> str:
    levels = ["a0: &a0 [" + "x, " * 9 + "x]"]
    levels += [f"a{n}: &a{n} [" + f"*a{n - 1}, " * 9 + f"*a{n - 1}]" for n in range(1, 12)]
    return "\n".join(levels)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (_bomb(), "aliases are not accepted"),
        ("a: &a [*a]", "aliases are not accepted"),
        ("a: " + "[" * 10_000 + "]" * 10_000, "nested deeper than 50"),
        ("a: " + "{a: " * 10_000, "nested deeper than 50"),
        ("\n".join(" " * n + "a:" for n in range(300)), "nested deeper than 50"),
        ("profile: a\nprofile: b", "'profile' stands twice"),
        ("profile: " + "9" * 10_000, "a value cannot be read"),
        ("profile: 2001-99-99", "a value cannot be read"),
        ("profile: !!python/object/apply:os.system ['touch outside']", "could not determine a constructor"),
        ("profile: " + "x" * 10 * MB, "more than 65536"),
        ("profile: \0", "not readable as YAML"),
        ("- profile", "expected a mapping"),
        ("", "expected a mapping"),
        ("profile: tiny\nunheard_of: 1", "unheard_of: unknown key"),
    ],
    ids=lambda value: value[:30],
)
def test_hostile_parameters_are_one_clear_error(project: Project, text: str, why: str) -> None:
    project.take("rows.json", text)
    assert why in project.error and "params.yaml" in project.error
