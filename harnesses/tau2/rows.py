"""From a conversation to its row, and from the rows to the figure that the harness prints."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any

from envace.benchmarks.protocol import Row, Spec, Tokens
from harnesses.bfcl.replies import Reply, failure_of
from harnesses.tau2.children import Died
from harnesses.tau2.failures import elsewhere
from harnesses.tau2.line import Line
from harnesses.tau2.plan import Job

_KEPT = {"role", "content", "tool_calls", "id", "requestor", "error"}
_ENDED_WELL = ("user_stop", "agent_stop")


def converse(line: Line, job: Job) -> dict[str, Any]:
    """Run one conversation. Returns a row's fields besides its key; never raises."""
    try:
        run = line.simulate(job.domain, job.task, job.seed)
    except Exception as error:
        broken = elsewhere(error, line.judged(job.task))
        return {"status": broken.status, "reason": str(broken)}
    ended = str(run.termination_reason.value)
    garbage = _garbage(run.messages)
    return {
        "status": "model_failure" if garbage else "scored",
        "score": run.reward_info.reward,
        "reason": garbage or (None if ended in _ENDED_WELL else f"ended by {ended}"),
        "tokens": _tokens(run.messages),
        "trajectory": [_message(each) for each in run.messages],
    }


def row(line: Line, spec: Spec, job: Job, found: Any) -> Row:
    """The row of a conversation that ran, well or not."""
    if isinstance(found, Died):
        found = _death(found, spec)
    found = {"score": line.broken_score, **found}
    counted = found["score"] is not None
    return Row(run=job.run, task_id=job.task_id, category=job.domain, official_counted=counted, **found)


def not_run(job: Job, reason: str) -> Row:
    """The row of a conversation that was not begun."""
    return Row(
        run=job.run,
        task_id=job.task_id,
        category=job.domain,
        score=None,
        status="not_run",
        official_counted=False,
        reason=reason,
    )


def printed(line: Line, spec: Spec, domain: str, tasks: list[Any], rows: Sequence[Row]) -> float | None:
    """The harness's own average reward of a domain in percent, from its own code; null where none counts."""
    from tau2.data_model.simulation import AgentInfo, Info, Results, RewardInfo, SimulationRun, UserInfo
    from tau2.environment.environment import EnvironmentInfo
    from tau2.metrics.agent_metrics import compute_metrics

    ran = [each for each in rows if each.category == domain and each.status != "not_run"]
    if not any(each.official_counted for each in ran):
        return None
    info = Info(
        git_commit=spec.harness.commit or spec.harness.version,
        num_trials=spec.trials,
        max_steps=0,
        max_errors=0,
        user_info=UserInfo(implementation="envace"),
        agent_info=AgentInfo(implementation="envace"),
        environment_info=EnvironmentInfo(domain_name=domain, policy=""),
    )
    conversations = [
        SimulationRun(
            id=f"{each.run}:{each.task_id}",
            task_id=each.task_id.removeprefix(f"{domain}/"),
            start_time="",
            end_time="",
            duration=0.0,
            termination_reason=_ENDED_WELL[0] if each.official_counted else line.broken_reason,
            reward_info=RewardInfo(reward=each.score or 0.0),
            agent_cost=0.0,
            user_cost=0.0,
            messages=[],
            trial=each.run,
        )
        for each in ran
    ]
    results = Results(info=info, tasks=tasks, simulations=conversations)
    return 100 * float(compute_metrics(results).avg_reward)


def _death(found: Died, spec: Spec) -> dict[str, Any]:
    if found.by == signal.SIGALRM:
        return {"status": "model_failure", "reason": f"a tool ran for more than {spec.limits.step_s:g} s; ended"}
    if found.by:
        return {"status": "infra_failure", "reason": f"its process was ended by {signal.Signals(found.by).name}"}
    return {"status": "infra_failure", "reason": f"its process ended with {found.exitcode} and no answer"}


def _garbage(messages: Sequence[Any]) -> str | None:
    """What the agent said that is no speech. The harness takes it for an answer, which where nothing is to be done
    passes; strictly it is a failure, by the same rules as everywhere.
    """
    said = [each.content for each in messages if each.role == "assistant" and not each.tool_calls]
    return next((why for text in said if (why := failure_of(Reply(text))) is not None), None)


def _tokens(messages: Sequence[Any]) -> Tokens | None:
    used = [m.usage for m in messages if m.role == "assistant" and getattr(m, "usage", None)]
    if not used:
        return None
    return Tokens(
        prompt=sum(each["prompt_tokens"] for each in used), completion=sum(each["completion_tokens"] for each in used)
    )


def _message(message: Any) -> dict[str, Any]:
    """Without times and costs; with the thinking, which the harness itself does not keep."""
    kept = {k: v for k, v in message.model_dump(mode="json", include=_KEPT).items() if v not in (None, False)}
    said = (getattr(message, "raw_data", None) or {}).get("message") or {}
    thought = said.get("reasoning_content")
    return {**kept, "reasoning_content": thought} if thought else kept
