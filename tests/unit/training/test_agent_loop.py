"""verl's agent loop: the rows of a rollout, with labels, masks, log-probabilities, reward and the rollout's record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envace.chat.layout import ChatLayout, render_calls
from envace.config import Params
from envace.engines.protocol import GenerationRequest
from envace.engines.scripted import ScriptedEngine
from envace.errors import TrainingError
from envace.files import compact_json
from envace.params_training import SimulatorParams
from envace.training.finite import require_finite_rollouts
from envace.training.labels import PADDING_ROLE, RowLabel
from envace.training.settings import run_settings
from envace.types import Criterion, Evidence, Rubric, Task, ToolCall
from tests.world_simulator import world_simulator

CALL = ToolCall(tool_name="get_weather", arguments='{"city": "Oslo"}')
SCRIPT = [render_calls([CALL]), '{"weather": "sunny"}', "It is sunny."]
ASKED = ("Weather in Oslo?", [("get_weather", {"city": "Oslo"})], ["sunny"])


class Servers:
    """What LLMServerClient is to an agent loop, on a script."""

    def __init__(self, layout: ChatLayout, script: list[str]) -> None:
        self.engine, self.sampling = ScriptedEngine(layout, script), []

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Any:
        self.sampling.append((request_id, sampling_params))
        sampling = sampling_params
        request = GenerationRequest(
            request_id,
            prompt_ids,
            sampling["max_tokens"],
            sampling["temperature"],
            sampling["top_p"],
            sampling["seed"],
        )
        generation = await self.engine.generate(request)
        fields = {"global_steps": 3, "min_global_steps": 3, "max_global_steps": 3}
        log_probs = [-0.5 - i for i in range(len(generation.token_ids))]
        return SimpleNamespace(token_ids=generation.token_ids, log_probs=log_probs, extra_fields=fields)


@pytest.fixture
def run(plugins: Any, tokenizer: Any, layout: ChatLayout, params: Params) -> Callable[..., Any]:
    """Runs one rollout of a task through the agent loop; gives its rows and the servers."""
    from envace.training.agent_loop import EnvaceAgentLoop

    def start(
        task: Task,
        script: list[str],
        phase: str = "train",
        settings: dict[str, Any] | None = None,
        servers: Any = None,
        **limits: Any,
    ) -> Any:
        rollout = params.rollout.model_copy(update={"max_act_tokens": 100, "max_rehearse_tokens": 60, **limits})
        made = run_settings(params.model_copy(update={"rollout": rollout}), Path("/nowhere"))
        loop: Any = object.__new__(EnvaceAgentLoop)
        loop.server_manager, loop.tokenizer = servers or Servers(layout, script), tokenizer
        loop._settings = made.model_copy(update=settings or {})
        info = {"index": 7, "phase": phase, "task": task.model_dump_json()}
        return asyncio.run(loop.run({}, extra_info=info, global_steps=4, session_id=2)), loop.server_manager

    return start


SEPARATE = {"merge_rows": False}


@pytest.mark.parametrize("broken_from", [0, 1])
def test_a_number_of_the_servers_that_is_not_finite_is_in_the_record(
    run: Callable[..., Any], make_task: Callable[..., Task], layout: ChatLayout, broken_from: int
) -> None:
    class Broken(Servers):
        async def generate(self, request_id: str, **request: Any) -> Any:
            output = await super().generate(request_id, **request)
            if len(self.sampling) > broken_from:
                output.log_probs[-1] = float("nan")
            return output

    rows, _ = run(make_task(ASKED), SCRIPT, servers=Broken(layout, SCRIPT))
    with pytest.raises(TrainingError, match=r"step 4: 1 training rollout.* task t0\)"):
        require_finite_rollouts(4, "training", [r.extra_fields["record"] for r in rows])
    sound, _ = run(make_task(ASKED), SCRIPT)
    require_finite_rollouts(4, "training", [r.extra_fields["record"] for r in sound])


def test_outputs_that_continue_each_other_are_one_row(
    run: Callable[..., Any], make_task: Callable[..., Task], layout: ChatLayout
) -> None:
    (row,), servers = run(make_task(ASKED), SCRIPT)
    requests = servers.engine.requests
    assert row.prompt_ids == requests[0].prompt_ids
    whole = [*row.prompt_ids, *row.response_ids]
    assert len(row.response_mask) == len(row.response_logprobs) == len(row.response_ids)
    label = RowLabel.of(row.extra_fields, padding=False)
    assert [span.role for span in label.spans] == ["act", "rehearse", "act"]
    trained = [False] * len(row.response_ids)
    for span, request, text in zip(label.spans, requests, SCRIPT, strict=True):
        assert whole[: len(row.prompt_ids) + span.begin] == request.prompt_ids  # just what the policy saw
        assert layout.text(row.response_ids[span.begin : span.end]) == text
        trained[span.begin : span.end] = [True] * (span.end - span.begin)
    assert row.response_mask == [int(t) for t in trained] and 0 in row.response_mask
    expected = [0.0] * len(trained)
    for span in label.spans:
        expected[span.begin : span.end] = [-0.5 - i for i in range(span.end - span.begin)]
    assert row.response_logprobs == expected
    assert row.reward_score == 1.0 and label.order == (7, 2, 0) and label.counts


def test_every_output_can_be_a_row_with_its_own_prompt_and_the_rollouts_reward(
    run: Callable[..., Any], make_task: Callable[..., Task], layout: ChatLayout
) -> None:
    rows, servers = run(make_task(ASKED), SCRIPT, settings=SEPARATE)
    assert [r.extra_fields["role"] for r in rows] == ["act", "rehearse", "act"]
    assert [layout.text(r.response_ids) for r in rows] == SCRIPT
    assert [r.prompt_ids for r in rows] == [q.prompt_ids for q in servers.engine.requests]
    for row in rows:
        assert row.response_mask == [1] * len(row.response_ids) and len(row.response_logprobs) == len(row.response_ids)
        assert row.reward_score == 1.0 and row.extra_fields["scorable"] is True
        assert row.extra_fields["min_global_steps"] == row.extra_fields["max_global_steps"] == 3
    labels = [RowLabel.of(r.extra_fields, padding=False) for r in rows]
    assert [x.order for x in labels] == [(7, 2, 0), (7, 2, 1), (7, 2, 2)] and {x.rollout for x in labels} == {"7#2"}


def test_all_rows_set_the_same_fields(run: Callable[..., Any], make_task: Callable[..., Task]) -> None:
    rows, _ = run(make_task(ASKED), SCRIPT, settings=SEPARATE)
    assert len({frozenset(r.extra_fields) for r in rows}) == 1
    assert len({frozenset(r.model_fields_set) for r in rows}) == 1


def test_the_last_row_alone_carries_the_record(run: Callable[..., Any], make_task: Callable[..., Task]) -> None:
    rows, _ = run(make_task(ASKED), SCRIPT, settings=SEPARATE)
    assert [bool(r.extra_fields["record"]) for r in rows] == [False, False, True]
    record = json.loads(rows[-1].extra_fields["record"])
    assert (record["step"], record["phase"], record["reward"], record["rollout_index"]) == (4, "train", 1.0, 2)
    assert rows[-1].extra_fields["reward_extra_info"] == {"success": 1.0, "record": rows[-1].extra_fields["record"]}


def test_a_rollout_that_cannot_be_scored_has_rows_with_mask_0(
    run: Callable[..., Any], make_task: Callable[..., Task]
) -> None:
    rows, _ = run(make_task(ASKED), SCRIPT[:2])  # the servers fail before the reply
    assert len(rows) == 1 and all(set(r.response_mask) == {0} for r in rows)
    assert all(r.reward_score == 0.0 and r.extra_fields["scorable"] is False for r in rows)
    record = json.loads(rows[-1].extra_fields["record"])
    assert record["reward"] is None and record["stop_reason"] == "engine_failure"
    assert not any(RowLabel.of(r.extra_fields, padding=False).counts for r in rows)


@pytest.mark.parametrize("script, limits", [([], {}), (SCRIPT, {"max_prompt_tokens": 3})])
def test_a_rollout_without_any_output_is_still_recorded_and_never_trained_on(
    run: Callable[..., Any], make_task: Callable[..., Task], script: list[str], limits: dict[str, Any]
) -> None:
    (row,), _ = run(make_task(ASKED), script, **limits)
    assert set(row.response_mask) == {0} and row.prompt_ids and row.response_ids
    assert len(row.response_logprobs) == len(row.response_ids)
    label = RowLabel.of(row.extra_fields, padding=False)
    assert label.role == PADDING_ROLE and not label.counts
    record = json.loads(label.record)
    expected = ("context_overflow", 0.0) if limits else ("engine_failure", None)
    assert (record["stop_reason"], record["reward"]) == expected and record["outputs"] == []
    whole, _ = run(make_task(ASKED), SCRIPT)
    assert set(row.extra_fields) >= {"min_global_steps", "max_global_steps"}
    assert set(whole[0].extra_fields) - set(row.extra_fields) <= {"global_steps"}


def test_sampling_is_of_the_role_and_the_seed_of_the_step(
    run: Callable[..., Any], make_task: Callable[..., Task], params: Params
) -> None:
    _, train = run(make_task(ASKED), SCRIPT)
    _, validation = run(make_task(ASKED), SCRIPT, phase="validation")
    assert [s["temperature"] for _, s in train.sampling] == [1.0, 1.0, 1.0]
    act = params.train_policy.validation_act
    assert [s["temperature"] for _, s in validation.sampling] == [act.temperature, 1.0, act.temperature]
    assert [s["max_tokens"] for _, s in train.sampling] == [100, 60, 100]
    assert {r for r, _ in train.sampling} == {"t0#2"}
    seeds = [s["seed"] for _, s in train.sampling + validation.sampling]
    assert len(set(seeds)) == 6


def test_validation_executes_the_tools_of_a_world_and_training_never_does(
    run: Callable[..., Any], sample_tasks: list[Task]
) -> None:
    task = next(t for t in sample_tasks if t.turns[0].reference_steps[0].tool_calls)
    step = task.turns[0].reference_steps[0]
    script = [render_calls(step.tool_calls[:1]), '{"imagined": true}', "Done."]
    trained, _ = run(task, script)
    validated, _ = run(task, [script[0], "Done."], phase="validation")
    source = {
        phase: json.loads(json.loads(rows[-1].extra_fields["record"])["turns"])[0]["steps"][0]["observations"][0]
        for phase, rows in (("train", trained), ("validation", validated))
    }
    assert source["train"] == {"source": "rehearsed", "content": '{"imagined": true}'}
    assert source["validation"] == {"source": "environment", "content": step.tool_results[0].content}


def test_a_task_with_a_checklist_is_judged_by_the_one_judge_of_the_process(
    run: Callable[..., Any], make_task: Callable[..., Task]
) -> None:
    from envace.training import agent_loop

    agent_loop._judge.cache_clear()
    fields: dict[str, Any] = {"target": "tool_call", "question": "", "failure_examples": [], "prerequisite_ids": []}
    evidence = [Evidence(turn=0, step=0, source="tool_call", snippet=written("Oslo"))]
    task = make_task(ASKED)
    criterion = Criterion(
        criterion_id="t0.c0",
        turn_index=0,
        pass_condition='There is a call of get_weather with arguments {"city": "Oslo"}',
        evidence=evidence,
        weight=1.0,
        source_weight=1.0,
        is_gating=True,
        **fields,
    )
    task = task.model_copy(update={"outcome": None, "rubrics": [Rubric(variant_index=0, criteria=[criterion])]})
    for _ in range(2):
        rows, _ = run(task, SCRIPT)
        record = json.loads(rows[-1].extra_fields["record"])
        (turn,) = json.loads(record["turns"])
        assert turn["verdicts"] == {"t0.c0": "pass"} and record["reward"] == 1.0
        assert all(row.extra_fields["scorable"] and row.reward_score == 1.0 for row in rows)
    unclear = criterion.model_copy(update={"pass_condition": "The assistant is polite."})
    asked = task.model_copy(update={"rubrics": [Rubric(variant_index=0, criteria=[unclear])]})
    rows, _ = run(asked, SCRIPT)
    record = json.loads(rows[-1].extra_fields["record"])
    assert (record["stop_reason"], record["reward"]) == ("judge_unavailable", None)
    assert all(set(row.response_mask) == {0} for row in rows)
    assert agent_loop._judge.cache_info().misses == 1


def test_a_simulators_answers_are_in_the_record_and_no_rows(
    run: Callable[..., Any], make_task: Callable[..., Task], params: Params
) -> None:
    with world_simulator() as server:
        simulator = with_endpoint(params, server.base_url)
        rows, servers = run(make_task(ASKED), [SCRIPT[0], SCRIPT[2]], settings={"simulator": simulator})
        assert server.asked == 1 and len(servers.sampling) == 2
        (row,) = rows
        spans = RowLabel.of(row.extra_fields, padding=False).spans
        assert [span.role for span in spans] == ["act", "act"]
        assert sum(row.response_mask) == sum(s.end - s.begin for s in spans) < len(row.response_ids)
        record = json.loads(row.extra_fields["record"])
        assert [o["role"] for o in record["outputs"]] == ["act", "rehearse", "act"]
        (step, _) = json.loads(record["turns"])[0]["steps"]
        answer = server.environment.respond("get_weather", {"city": "Oslo"})
        assert step["observations"] == [{"source": "rehearsed", "content": compact_json(answer)}]
        server.down = True
        rows, _ = run(make_task(ASKED), [SCRIPT[0], SCRIPT[2]], settings={"simulator": simulator})
    record = json.loads(rows[-1].extra_fields["record"])
    assert (record["stop_reason"], record["reward"]) == ("engine_failure", None) and "503" in record["error"]
    assert all(set(r.response_mask) == {0} for r in rows)


def test_each_role_asks_the_servers_of_its_own_policy(
    run: Callable[..., Any], make_task: Callable[..., Task], layout: ChatLayout
) -> None:
    from envace.training.second_policy import RoleClients

    acting, rehearsing = Servers(layout, [SCRIPT[0], SCRIPT[2]]), Servers(layout, [SCRIPT[1]])
    clients: Any = RoleClients(acting, rehearsing)  # type: ignore[arg-type]
    rows, _ = run(make_task(ASKED), [], settings={"method": "per_role"} | SEPARATE, servers=clients)
    assert [r.extra_fields["role"] for r in rows] == ["act", "rehearse", "act"] and rows[-1].reward_score == 1.0
    assert (len(acting.sampling), len(rehearsing.sampling)) == (2, 1)


def with_endpoint(params: Params, base_url: str) -> SimulatorParams:
    """The shipped simulator at an address, impatient."""
    shipped = params.train_policy.simulator
    changes = {"base_url": base_url, "model": "world", "retries": 0, "timeout_s": 20.0}
    return shipped.model_copy(update={"endpoint": shipped.endpoint.model_copy(update=changes)})


def written(city: str) -> str:
    """A call of the reference as evidence snippets hold it."""
    return json.dumps({"name": "get_weather", "arguments": {"city": city}})
