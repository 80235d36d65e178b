"""What the sections of params.yaml have in common: their base class, bounded numbers, and parts used more than once."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]


class Section(BaseModel):
    """A part of params.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SamplingParams(Section):
    """How one role samples. Temperature 0 is greedy."""

    temperature: Annotated[float, Field(ge=0)]
    top_p: Annotated[float, Field(gt=0, le=1)]


class EndpointParams(Section):
    """An OpenAI-compatible endpoint and how patient we are with it. The key is read from the variable `api_key_env`."""

    base_url: str | None
    model: str | None
    api_key_env: str | None
    allowed_hosts: list[str]
    timeout_s: Positive
    retries: Annotated[int, Field(ge=0, le=20)]
    deadline_s: Positive
    concurrency: Count
    breaker_failures: Count
    breaker_pause_s: Positive
