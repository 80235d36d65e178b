"""All-or-nothing writes under errors and SIGKILL; hashes and canonical text."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envace.files import atomic_path, canonical_json, compact_json, read_json, sha256_file, sha256_tree, write_json

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_a_file_appears_whole_and_replaces_the_old_one(tmp_path: Path) -> None:
    for text in ("one", "two"):
        with atomic_path(tmp_path / "deep" / "file") as part:
            part.write_text(text)
        assert (tmp_path / "deep" / "file").read_text() == text
    assert names(tmp_path / "deep") == ["file"]


def test_a_folder_replaces_a_full_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with atomic_path(tmp_path / "out") as part:
            part.mkdir()
            (part / name).write_text(name)
    assert names(tmp_path) == ["out"] and names(tmp_path / "out") == ["b"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    write_json(tmp_path / "file.json", {"old": 1})
    with pytest.raises(error), atomic_path(tmp_path / "file.json") as part:
        part.write_text("half")
        raise error
    assert read_json(tmp_path / "file.json") == {"old": 1} and names(tmp_path) == ["file.json"]


def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left, living = tmp_path / f".file.part-{gone.pid}-x", tmp_path / f".file.part-{os.getpid()}-x"
    for folder in (left, living, tmp_path / ".other.part-1-x"):
        folder.mkdir()
        (folder / "half").write_text("half")
    write_json(tmp_path / "file", 1)
    assert not left.exists() and living.exists() and (tmp_path / ".other.part-1-x").exists()


WRITER = """
import sys
from pathlib import Path
from envace.files import atomic_path
root = Path(sys.argv[1])
print("up", flush=True)
for number in range(10**9):
    with atomic_path(root / "file") as part:
        with part.open("w") as f:
            for _ in range(50):
                f.write(f"{number:09d}" * 20 + "\\n")
                f.flush()
    with atomic_path(root / "folder") as part:
        part.mkdir()
        for name in ("a", "b", "c"):
            (part / name).write_text(str(number))
"""


def test_a_kill_at_any_moment_shows_no_part(tmp_path: Path) -> None:
    moments = random.Random(0)
    for _ in range(8):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(moments.uniform(0.0, 0.05))
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate()
        seen = [n for n in names(tmp_path) if not n.startswith(".")]
        assert set(seen) <= {"file", "folder"}
        if "file" in seen:
            lines = (tmp_path / "file").read_text().splitlines()
            assert len(lines) == 50 and len(set(lines)) == 1
        if "folder" in seen:
            assert len({(tmp_path / "folder" / n).read_text() for n in ("a", "b", "c")}) == 1


def test_no_number_that_is_none_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert names(tmp_path) == []


@given(json_values)
def test_canonical_text_reads_back_and_does_not_depend_on_the_order_of_keys(value: object) -> None:
    import json

    text = canonical_json(value)
    assert json.loads(text) == value and "\n" not in text
    if isinstance(value, dict):
        assert canonical_json(dict(reversed(value.items()))) == text
        assert json.loads(compact_json(value)) == value


def test_a_hash_of_a_folder_sees_names_contents_and_nothing_else(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "x").write_text("1")
    first = sha256_tree(tmp_path / "a")
    assert sha256_tree(tmp_path / "b") == first
    (tmp_path / "b" / "inner" / "x").write_text("2")
    assert sha256_tree(tmp_path / "b") != first
    (tmp_path / "a" / "inner" / "x").rename(tmp_path / "a" / "inner" / "y")
    assert sha256_tree(tmp_path / "a") != first
    assert sha256_file(tmp_path / "a" / "inner" / "y") == sha256_file(tmp_path / "a" / "inner" / "y")


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())
