"""Whose fault it is when a conversation breaks: the policy's (strictly 0) or the infrastructure's (0, and counted)."""

from __future__ import annotations

import json

from openai import OpenAIError
from pydantic import ValidationError

from envace.endpoints.overflow import outgrown

_SHOWN = 300


class Broken(Exception):
    """A conversation that came to no score. `status` is that of its row."""

    status = "infra_failure"


class ModelFailure(Broken):
    """The policy said what the harness cannot take."""

    status = "model_failure"


class InfraFailure(Broken):
    """An endpoint, the user or the judge failed; the policy is not known to be at fault."""


def while_policy_speaks(error: Exception) -> Broken:
    """What an error means that came out of asking the policy and reading its reply."""
    if isinstance(error, Broken):
        return error
    if isinstance(error, json.JSONDecodeError):
        return ModelFailure(f"the arguments of a tool call are no JSON: {_short(error)}")
    if isinstance(error, ValidationError):
        return ModelFailure(f"a tool call of the wrong form: {_short(error)}")
    if isinstance(error, OpenAIError):
        if outgrown(f"{type(error).__name__} {error}", getattr(error, "status_code", None)):
            return ModelFailure(f"the conversation outgrew the context: {_short(error)}")
        return InfraFailure(f"policy endpoint: {type(error).__name__}: {_short(error)}")
    if isinstance(error, ValueError) and "must have either content or tool calls" in str(error):
        return ModelFailure("an empty reply: neither text nor a tool call (thinking alone is none)")
    return InfraFailure(f"asking the policy: {type(error).__name__}: {_short(error)}")


def while_user_speaks(error: Exception) -> Broken:
    """What an error means that came out of asking the simulated user: never the policy's fault."""
    return error if isinstance(error, Broken) else InfraFailure(f"user: {type(error).__name__}: {_short(error)}")


def elsewhere(error: Exception, judged: bool) -> Broken:
    """What an error means that the harness raised between two turns, or while it scored. `judged`: by a model."""
    if isinstance(error, Broken):
        return error
    if isinstance(error, OpenAIError) or (judged and isinstance(error, (KeyError, TypeError, json.JSONDecodeError))):
        return InfraFailure(f"judge: {type(error).__name__}: {_short(error)}")
    return ModelFailure(f"the harness broke on this conversation: {type(error).__name__}: {_short(error)}")


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:_SHOWN]
