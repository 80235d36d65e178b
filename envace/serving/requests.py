"""Reads a chat completion request: what is supported is typed, what is not is refused by name, nothing is ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from envace.serving.errors import ApiError
from envace.strict_json import NotStrictJsonError, parse_strict

# Accepted where they ask for what happens anyway; otherwise refused. (key: values that change nothing)
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "stop": ([], ""),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "logit_bias": ({},),
    "response_format": ({"type": "text"},),
    "parallel_tool_calls": (True,),
    "top_k": (-1, 0),
    "min_p": (0,),
}
_MEANINGLESS = ("user", "metadata", "store", "service_tier", "stream_options")


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class TextPart(_Part):
    """A piece of content. Only text is supported."""

    type: Literal["text"]
    text: str


class CalledFunction(_Part):
    """`arguments` is JSON text."""

    name: str
    arguments: str


class RequestedCall(_Part):
    """A call in the history."""

    id: str = ""
    type: Literal["function"] = "function"
    function: CalledFunction


class Message(_Part):
    """One message. Other keys that clients send back (refusal, annotations, ...) carry nothing for a policy."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    tool_calls: list[RequestedCall] | None = None
    reasoning_content: str | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Message:
        if self.role != "assistant" and (self.content is None or self.tool_calls or self.reasoning_content):
            raise ValueError(f"a message of role {self.role!r} has content, and no calls or reasoning")
        return self

    def for_template(self) -> dict[str, Any]:
        """The message as chat templates take it."""
        content = self.content
        text = content if isinstance(content, str) else "".join(part.text for part in content or [])
        message: dict[str, Any] = {"role": self.role, "content": text}
        if self.tool_calls:
            message["tool_calls"] = [call.model_dump() for call in self.tool_calls]
        if self.reasoning_content is not None:
            message["reasoning_content"] = self.reasoning_content
        return message


class Function(_Part):
    """A tool's function."""

    name: Annotated[str, Field(min_length=1)]
    description: str = ""
    parameters: dict[str, Any] = {"type": "object", "properties": {}}


class Tool(_Part):
    """A tool on offer."""

    type: Literal["function"]
    function: Function


class ChatRequest(BaseModel):
    """A request that can be answered."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str
    messages: Annotated[list[Message], Field(min_length=1)]
    tools: list[Tool] | None = None
    tool_choice: Literal["none", "auto"] = "auto"
    temperature: Annotated[float, Field(ge=0, le=2)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    stream: bool = False

    @property
    def offers_tools(self) -> bool:
        """Whether an answer may call tools. With tool_choice none the policy is not shown any."""
        return bool(self.tools) and self.tool_choice == "auto"


def read_request(body: bytes) -> ChatRequest:
    """Decode a request body. Raises ApiError (400) that names what is wrong."""
    try:
        raw = parse_strict(body.decode("utf-8"))
    except (UnicodeDecodeError, NotStrictJsonError) as error:
        raise ApiError(400, f"the body is not JSON: {error}"[:300], code="invalid_json") from None
    if not isinstance(raw, dict):
        raise ApiError(400, "the body must be a JSON object", code="invalid_json")
    given = {key: value for key, value in raw.items() if value is not None and key not in _MEANINGLESS}
    if "max_completion_tokens" in given:
        given["max_tokens"] = given.pop("max_completion_tokens")
    for key, neutral in _NEUTRAL.items():
        if key in given and given.pop(key) not in neutral:
            raise ApiError(400, f"{key} is not supported here", code="unsupported_parameter", parameter=key)
    try:
        return ChatRequest.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = "unknown parameter" if first["type"] == "extra_forbidden" else first["msg"]
        raise ApiError(400, f"{where}: {reason}"[:300], code="invalid_value", parameter=where) from None
