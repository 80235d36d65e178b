"""The cache of verdicts: what a spoilt file gives, and what is forgotten."""

from __future__ import annotations

from pathlib import Path

from envace.rewards.verdict_cache import VerdictCache
from envace.types import Verdict

PASS, FAIL = Verdict.PASS, Verdict.FAIL


def test_a_spoilt_cache_file_is_read_as_far_as_it_is_sound(tmp_path: Path) -> None:
    path, key = tmp_path / "verdicts.jsonl", VerdictCache.key("a", "b")
    VerdictCache(path).put(key, PASS)
    good = path.read_text()
    strange = [
        '{"key": "zz", "verdict": "pass"}',
        '{"key": 3}',
        "[]",
        '{"key": "' + "0" * 32 + '", "verdict": "unknown"}',
    ]
    path.write_text(good[: len(good) // 2] + "\n".join(["", *strange, "\x00"]) + good[:20])
    other = VerdictCache.key("c")
    VerdictCache(path).put(other, FAIL)  # after a line that a killed writer cut short
    read = VerdictCache(path)
    assert (read.get(other), read.get(key), len(read)) == (FAIL, None, 1)


def test_the_cache_is_bounded_and_forgets_what_was_used_longest_ago() -> None:
    cache, keys = VerdictCache(max_verdicts=2), [VerdictCache.key(str(n)) for n in range(3)]
    cache.put(keys[0], PASS)
    cache.put(keys[1], FAIL)
    cache.get(keys[0])
    cache.put(keys[2], PASS)
    assert [cache.get(key) for key in keys] == [PASS, None, PASS]


def test_unknown_verdicts_are_never_kept(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "verdicts.jsonl")
    cache.put(VerdictCache.key("a"), Verdict.UNKNOWN)
    assert len(cache) == 0 and not (tmp_path / "verdicts.jsonl").exists()
