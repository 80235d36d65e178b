"""Sealed checkpoints: the newest whole one is found, and whatever is wrong with a newer one is named."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from envace.files import write_json
from envace.training.checkpoints import SEAL, discard_after, fault_of, fingerprint, newest_sealed, prune, seal

FILES = [
    "actor/model_world_size_1_rank_0.pt",
    "actor/optim_world_size_1_rank_0.pt",
    "actor/extra_state_world_size_1_rank_0.pt",
    "actor/huggingface/config.json",
    "actor/huggingface/model.safetensors",
    "data.pt",
]


def checkpoint(folder: Path, step: int, *, sealed: bool = True) -> Path:
    path = folder / f"global_step_{step}"
    rng = random.Random(step)
    for name in FILES:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(rng.randbytes(2000))
    if sealed:
        seal(path)
    return path


def found(folder: Path) -> tuple[int | None, list[str]]:
    said: list[str] = []
    newest = newest_sealed(folder, said.append)
    return newest[1] if newest else None, said


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE = [flip, cut, halve, empty, remove, grow, replace_by_folder]


def test_nothing_there_gives_nothing(tmp_path: Path) -> None:
    assert found(tmp_path / "missing") == (None, [])
    (tmp_path / "global_step_x").mkdir()
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("3")
    assert found(tmp_path) == (None, [])


def test_the_newest_whole_one_is_found_by_number_not_by_name(tmp_path: Path) -> None:
    for step in (2, 9, 10):
        checkpoint(tmp_path, step)
    newest = newest_sealed(tmp_path)
    assert newest == (tmp_path / "global_step_10", 10)


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", FILES)
def test_any_damaged_file_falls_back_to_the_one_before_and_is_named(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    checkpoint(tmp_path, 5)
    damage(checkpoint(tmp_path, 10) / name)
    start = time.monotonic()
    step, said = found(tmp_path)
    assert step == 5 and len(said) == 1 and name in said[0] and "step 10" in said[0]
    assert time.monotonic() - start < 2


@pytest.mark.parametrize("name", ["extra.pt", "actor/huggingface/model.py", "actor/.hidden"])
def test_a_file_too_many_falls_back_and_is_named(tmp_path: Path, name: str) -> None:
    checkpoint(tmp_path, 5)
    (checkpoint(tmp_path, 10) / name).write_text("x")
    step, said = found(tmp_path)
    assert step == 5 and name in said[0]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"\xff", b"null", b'"x"', b'{"data.pt": 1}'])
def test_a_broken_seal_is_no_seal(tmp_path: Path, content: bytes) -> None:
    checkpoint(tmp_path, 5)
    (checkpoint(tmp_path, 10) / SEAL).write_bytes(content)
    step, said = found(tmp_path)
    assert step == 5 and len(said) == 1 and SEAL in said[0]


def test_a_file_of_gigabytes_that_is_cut_short_is_found_without_reading_it(tmp_path: Path) -> None:
    path = checkpoint(tmp_path, 10)
    sealed = {name: {"size": (path / name).stat().st_size, "sha256": "0" * 64} for name in FILES}
    with (path / FILES[0]).open("wb") as sparse:
        sparse.truncate(20 << 30)
    write_json(path / SEAL, sealed | {FILES[0]: {"size": (20 << 30) + 1, "sha256": "0" * 64}})
    checkpoint(tmp_path, 5)
    start = time.monotonic()
    step, said = found(tmp_path)
    assert step == 5 and FILES[0] in said[0] and time.monotonic() - start < 1


def test_a_checkpoint_that_was_never_finished_is_passed_over(tmp_path: Path) -> None:
    checkpoint(tmp_path, 5)
    checkpoint(tmp_path, 10, sealed=False)
    step, said = found(tmp_path)
    assert step == 5 and "never finished" in said[0]


def test_all_damaged_gives_nothing_and_names_each(tmp_path: Path) -> None:
    for step in (5, 10):
        cut(checkpoint(tmp_path, step) / "data.pt")
    step, said = found(tmp_path)
    assert step is None and len(said) == 2


def test_files_swapped_for_each_other_do_not_match(tmp_path: Path) -> None:
    path = checkpoint(tmp_path, 5)
    one, other = path / FILES[0], path / FILES[1]
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)
    assert found(tmp_path)[0] is None


def test_checkpoints_beyond_the_one_resumed_from_are_removed(tmp_path: Path) -> None:
    for step in (5, 10, 15):
        checkpoint(tmp_path, step)
    discard_after(tmp_path, 10)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["global_step_10", "global_step_5"]
    discard_after(tmp_path, -1)
    assert list(tmp_path.iterdir()) == []
    discard_after(tmp_path / "missing", -1)


def test_pruning_removes_earlier_steps_that_are_not_kept_and_nothing_newer(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        checkpoint(tmp_path, step)
    checkpoint(tmp_path, 5, sealed=False)
    prune(tmp_path, {2}, newest=4)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["global_step_2", "global_step_4", "global_step_5"]
    assert fault_of(tmp_path / "global_step_2") is None


def test_a_fingerprint_changes_with_every_part_and_not_with_their_order() -> None:
    parts = {"params": {"lr": 1e-3, "steps": 2}, "tasks": ["a", "b"], "base_model": "x"}
    same = {"base_model": "x", "tasks": ["a", "b"], "params": {"steps": 2, "lr": 1e-3}}
    assert fingerprint(parts) == fingerprint(same)
    changed = [
        parts | {"base_model": "y"},
        parts | {"tasks": ["b", "a"]},
        parts | {"tasks": ["a"]},
        parts | {"params": {"lr": 1e-4, "steps": 2}},
    ]
    assert len({fingerprint(p) for p in [parts, *changed]}) == 5
