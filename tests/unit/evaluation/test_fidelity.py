"""How true rehearsals are: each figure for itself, above all error recall, which agreement hides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envace.chat.layout import ChatLayout
from envace.config import load_params
from envace.engines.scripted import ScriptedEngine
from envace.evaluation.fidelity import compare, measure_fidelity, transitions
from envace.types import Role, Task

ERROR = {"error": "not found"}
ITEM = {"item": "lamp", "stock": 3}
scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
responses = st.dictionaries(
    st.sampled_from(["error", "item", "a/b", "n"]), scalars | st.lists(scalars, max_size=2), max_size=3
)


def test_a_true_rehearser_has_every_figure_at_1() -> None:
    found = compare([ERROR, ITEM], [ERROR, ITEM])
    shares = ("parses", "exact", "key_f1", "leaf_f1", "error_agreement", "error_recall")
    assert [found[name] for name in shares] == [1.0] * len(shares)
    assert (found["count"], found["recorded_errors"], found["distinct"]) == (2, 1, 2)


def test_an_optimist_is_caught_by_error_recall_though_agreement_is_high() -> None:
    recorded = [ITEM] * 19 + [ERROR]
    found = compare([ITEM] * 20, recorded)
    assert found["error_agreement"] == 0.95 and found["error_recall"] == 0.0 and found["exact"] == 0.95
    assert found["distinct"] == 1


def test_a_pessimist_has_full_recall_and_no_agreement() -> None:
    found = compare([ERROR] * 4, [ITEM, ITEM, ITEM, ERROR])
    assert found["error_recall"] == 1.0 and found["error_agreement"] == 0.25


def test_error_recall_is_none_where_no_error_is_recorded() -> None:
    found = compare([ERROR], [ITEM])
    assert found["error_recall"] is None and found["recorded_errors"] == 0 and found["error_agreement"] == 0.0


def test_what_does_not_parse_agrees_with_nothing() -> None:
    found = compare([None, None, None], [ERROR, ITEM, {}])
    shares = ("parses", "exact", "key_f1", "leaf_f1", "error_agreement", "error_recall")
    assert [found[name] for name in shares] == [0.0] * len(shares)
    assert found["distinct"] == 0


def test_nothing_compared_has_no_shares() -> None:
    found = compare([], [])
    assert found["count"] == 0 and found["exact"] is found["parses"] is found["error_recall"] is None


@pytest.mark.parametrize(
    "rehearsed, recorded, key_f1, leaf_f1",
    [
        ({"item": "lamp", "stock": 4}, ITEM, 1.0, 0.5),
        ({"item": "lamp"}, ITEM, 2 / 3, 2 / 3),
        ({"item": "lamp", "stock": 3, "price": 1}, ITEM, 0.8, 0.8),
        ({"name": "lamp"}, ITEM, 0.0, 0.0),
        ({"n": [1, 2]}, {"n": [1, 3]}, 1.0, 0.5),
        ({"n": []}, {"n": [1]}, 1.0, 0.0),
        ({}, {"n": []}, 0.0, 0.0),
        ({"n": True}, {"n": 1}, 1.0, 0.0),
        ({"n": "1"}, {"n": 1}, 1.0, 0.0),
        ({"n": None}, {"n": 0}, 1.0, 0.0),
        ([1], [1], 1.0, 1.0),
    ],
)
def test_keys_and_leaves_are_told_apart(rehearsed: Any, recorded: Any, key_f1: float, leaf_f1: float) -> None:
    found = compare([rehearsed], [recorded])
    assert found["key_f1"] == pytest.approx(key_f1, abs=1e-6) and found["leaf_f1"] == pytest.approx(leaf_f1, abs=1e-6)
    assert found["exact"] == float(leaf_f1 == key_f1 == 1)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.none() | responses, responses), min_size=1, max_size=5))
def test_shares_are_shares_and_exact_is_the_strictest(pairs: list[tuple[Any, Any]]) -> None:
    found = compare([r for r, _ in pairs], [t for _, t in pairs])
    for name in ("parses", "exact", "key_f1", "leaf_f1", "error_agreement"):
        value = found[name]
        assert value is not None and 0 <= value <= 1
        assert found["exact"] <= value + 1e-6  # type: ignore[operator]
    assert compare([t for _, t in pairs], [t for _, t in pairs])["exact"] == 1.0


def a_task_with_an_error(tasks: list[Task]) -> Task:
    """A task with several recorded results, an error among them."""
    for task in tasks:
        results = [r for t in task.turns for s in t.reference_steps for r in s.tool_results]
        if len(results) >= 3 and any(r.is_error for r in results):
            return task
    raise AssertionError("the sample has no such task")


def recorded_results(task: Task) -> list[str]:
    return [r.content for t in task.turns for s in t.reference_steps for r in s.tool_results]


ROLLOUT = load_params(Path(__file__).parents[3] / "params.yaml").rollout


def measure(layout: ChatLayout, task: Task, script: list[str], limit: int = 2000) -> tuple[dict[str, Any], Any]:
    engine = ScriptedEngine(layout, script)
    rollout = ROLLOUT.model_copy(update={"max_prompt_tokens": limit, "max_rehearse_tokens": 60})
    work = measure_fidelity([task], engine=engine, layout=layout, rollout=rollout)
    return asyncio.run(work), engine


def test_recorded_transitions_are_rehearsed_greedily_from_the_true_history(
    layout: ChatLayout, sample_tasks: list[Task], tokenizer: Any
) -> None:
    task = a_task_with_an_error(sample_tasks)
    results = recorded_results(task)
    found, engine = measure(layout, task, results)
    assert found["exact"] == found["error_recall"] == 1.0 and found["count"] == len(results) and found["too_long"] == 0
    for position, request in enumerate(engine.requests):
        prompt = tokenizer.decode(request.prompt_ids)
        assert request.temperature == 0 and prompt.endswith("<|im_start|>tool\n")
        assert all(r in prompt for r in results[:position])


def test_transitions_stand_where_a_rollout_would_rehearse_them(
    layout: ChatLayout, sample_tasks: list[Task], make_rollout: Callable[[Task], Any]
) -> None:
    for task in sample_tasks[:40]:
        rehearsals = [o for o in make_rollout(task).outputs if o.role is Role.REHEARSE]
        found = transitions(task, layout, ROLLOUT)
        assert [t.prompt_ids for t in found] == [o.prompt_ids for o in rehearsals]
        assert [t.call.canonical for t in found] == [o.call.canonical for o in rehearsals]


def test_a_rehearsal_that_never_ends_does_not_parse(layout: ChatLayout, sample_tasks: list[Task]) -> None:
    task = a_task_with_an_error(sample_tasks)
    found, _ = measure(layout, task, ['{"a": 1} ' * 100] * 20)
    assert found["parses"] == 0.0


def test_a_history_too_long_for_the_engine_is_left_out_and_counted(
    layout: ChatLayout, sample_tasks: list[Task]
) -> None:
    task = a_task_with_an_error(sample_tasks)
    lengths = sorted(len(t.prompt_ids) for t in transitions(task, layout, ROLLOUT))
    found, engine = measure(layout, task, recorded_results(task), limit=lengths[0])
    assert found["count"] == 1 and found["too_long"] == len(lengths) - 1
    assert [len(r.prompt_ids) for r in engine.requests] == lengths[:1]
