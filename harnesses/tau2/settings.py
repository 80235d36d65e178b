"""From spec.json to what the harness is called with: who speaks, on which model, under which limits."""

from __future__ import annotations

import os
from typing import Annotated, Any

from pydantic import Field, ValidationError

from envace.benchmarks.protocol import ModelEndpoint, Record, Spec
from envace.errors import BenchmarkError
from envace.params_basis import Count
from harnesses.tau2.agents import IdleAgent, OracleAgent, PolicyAgent, Rules
from harnesses.tau2.turns import Clock
from harnesses.tau2.users import ModelUser, ScriptedUser

NAME = "envace"
"""Under which agent and user are registered with the harness."""
_AGENTS = {"plain": PolicyAgent, "rehearsal": PolicyAgent, "oracle": OracleAgent, "do-nothing": IdleAgent}
_NO_MODEL = "none"


class Options(Record):
    """`options` of spec.json. `max_steps`, `max_errors`: the harness's own bounds, its own defaults.
    `scripted_turns`: after how many of the agent's messages the scripted user leaves.
    """

    max_steps: Count = 200
    max_errors: Count = 10
    scripted_turns: Annotated[int, Field(ge=1, le=50)] = 6


def options(spec: Spec) -> Options:
    """The options of a spec. Raises BenchmarkError where one is unknown or out of range."""
    try:
        return Options(**spec.options)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise BenchmarkError(f"options of τ²-bench: {wrong}; there are {', '.join(Options.model_fields)}") from None


def participants(spec: Spec) -> tuple[type, type]:
    """The classes that play the agent and the user, ready to be registered."""
    clock = Clock(spec.limits.step_s)
    agent, user = _AGENTS[spec.agent.kind], ModelUser if has_model_user(spec) else ScriptedUser
    agent.rules = Rules(clock, spec.limits.call_bytes)
    user.clock = clock
    if user is ScriptedUser:
        user.turns = options(spec).scripted_turns
    return agent, user


def has_model_user(spec: Spec) -> bool:
    """The oracle tells the user in so many words what to do, so it always talks to the script."""
    return spec.user is not None and spec.agent.kind != "oracle"


def conversation(spec: Spec) -> dict[str, Any]:
    """What both versions of the harness are called with for one conversation, domain and task apart."""
    bounds = options(spec)
    policy, policy_arguments = model_call(spec.policy)
    user, user_arguments = model_call(spec.user)
    return {
        "agent": NAME,
        "user": NAME,
        "llm_agent": policy,
        "llm_args_agent": policy_arguments,
        "llm_user": user,
        "llm_args_user": user_arguments,
        "max_steps": bounds.max_steps,
        "max_errors": bounds.max_errors,
    }


def model_call(endpoint: ModelEndpoint | None) -> tuple[str, dict[str, Any]]:
    """How the harness (litellm) names a model, and the arguments of each of its calls."""
    if endpoint is None:
        return _NO_MODEL, {}
    return f"openai/{endpoint.model}", {
        "api_base": endpoint.base_url,
        "api_key": os.environ.get(endpoint.api_key_env or "", "none"),
        "timeout": endpoint.timeout_s,
        "num_retries": endpoint.retries,
        "temperature": endpoint.sampling.temperature,
        "top_p": endpoint.sampling.top_p,
        "max_tokens": endpoint.sampling.max_tokens,
    }
