"""Where a step's time goes: parts that add up to it, and judging told from generation by what rollouts waited for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from envace.files import read_json
from envace.training.labels import RowLabel
from envace.training.stopwatch import FIELD, Stopwatch, summed
from envace.training.timings import JUDGE_S, PARTS, ROLLOUTS_S, step_split, write_timings
from envace.types import Task, Verdict

VERL = {"step": 10.0, "gen": 4.0, "old_log_prob": 0.5, "adv": 0.1, "update_actor": 3.0, "update_weights": 0.4}
VERL |= {"save_checkpoint": 1.0, "testing": 7.0}
METRICS = {"act/outputs": 10, "act/tokens_mean": 20.0, "rehearse/outputs": 5, "rehearse/tokens_mean": 8.0}


def test_the_parts_add_up_to_the_step() -> None:
    split = step_split(VERL, METRICS)
    assert sum(split[part] for part in PARTS) == pytest.approx(split["whole"]) == 10.0
    assert (split["generation"], split["judging"], split["update"], split["sync"]) == (4.0, 0.0, 3.6, 0.4)
    assert split["waiting"] == 1.0 and split["validation"] == 7.0
    assert split["tokens_per_s"] == 60.0


def test_judging_is_the_share_of_the_rollouts_time_that_they_wait_for_a_judge() -> None:
    split = step_split(VERL | {JUDGE_S: 30.0, ROLLOUTS_S: 120.0}, METRICS)
    assert (split["generation"], split["judging"]) == (3.0, 1.0)
    assert sum(split[part] for part in PARTS) == pytest.approx(10.0)


def test_a_step_without_durations_is_all_zeros() -> None:
    assert set(step_split({}, {}).values()) == {0.0}


def test_what_is_written_belongs_to_a_policy_and_holds_the_mean(tmp_path: Path) -> None:
    splits = {2: step_split(VERL, METRICS), 1: step_split(VERL | {"gen": 2.0}, METRICS)}
    write_timings(tmp_path / "timings.json", splits, "ab")
    written = read_json(tmp_path / "timings.json")
    assert written["model_sha256"] == "ab" and [s["step"] for s in written["steps"]] == [1, 2]
    assert written["mean"]["generation"] == 3.0


class SlowJudge:
    async def judge_turn(self, *_: Any) -> dict[str, Verdict]:
        await asyncio.sleep(0.05)
        return {"a": Verdict.PASS}


def test_a_stopwatch_counts_the_time_in_the_judge_and_passes_its_verdicts_on() -> None:
    watch = Stopwatch()
    judge = watch.judged(cast(Any, SlowJudge()))
    for _ in range(2):
        assert asyncio.run(judge.judge_turn(cast(Task, None), [], [])) == {"a": Verdict.PASS}
    judging, whole = watch.seconds()
    assert 0.1 <= judging <= whole < 5


RECORDS = [("", False), ("{}", False), ("{}", True)]  # an earlier output, the last one, padding made of it


def test_the_sums_count_each_rollout_once() -> None:
    fields = {"role": "act", "scorable": True, "order": [0, 0, 0], FIELD: [1.0, 2.0]}
    rows = [RowLabel.of(fields | {"record": record}, padding=padded) for record, padded in RECORDS]
    rows.append(RowLabel.of(fields | {"record": "{}", FIELD: [0.5, 3.0]}, padding=False))
    assert summed(rows) == {JUDGE_S: 1.5, ROLLOUTS_S: 5.0}
    assert summed([]) == {JUDGE_S: 0, ROLLOUTS_S: 0}
