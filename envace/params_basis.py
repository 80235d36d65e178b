"""What the sections of params.yaml have in common: their base class, bounded numbers, and parts used more than once."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
MAY_BE_SECRET = ("base_url", "api_key_env")
"""Keys whose value is never quoted in a refusal: a secret lands there by mistake."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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

    @field_validator("base_url")
    @classmethod
    def _holds_no_credentials(cls, url: str | None) -> str | None:
        if url is not None and "@" in url:
            raise ValueError("credentials do not belong in it; name the key's environment variable in api_key_env")
        return url

    @field_validator("api_key_env")
    @classmethod
    def _is_a_name(cls, name: str | None) -> str | None:
        if name is not None and not _VARIABLE.fullmatch(name):
            raise ValueError("it is the NAME of an environment variable, letters, digits and underscores, not the key")
        return name
