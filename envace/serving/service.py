"""Answers chat requests with a token engine: the prompt is the act role's, laid out as in training."""

from __future__ import annotations

import secrets
import time
import uuid

from envace.chat.layout import ChatLayout
from envace.engines.protocol import GenerationRequest, TokenEngine
from envace.errors import EngineError
from envace.serving.answers import Answered
from envace.serving.errors import ApiError
from envace.serving.requests import ChatRequest


class ChatService:
    """One model under one name. `max_length` is the engine's limit of prompt plus answer in tokens."""

    def __init__(self, engine: TokenEngine, layout: ChatLayout, *, name: str, max_length: int) -> None:
        self._engine, self._layout, self.name, self.max_length = engine, layout, name, max_length

    async def answer(self, request: ChatRequest) -> Answered:
        """Sample one answer. Raises ApiError where the request cannot be answered."""
        if request.model != self.name:
            raise ApiError(404, f"no model {request.model!r:.80} here; it is {self.name!r}", code="model_not_found")
        prompt = self._prompt(request)
        room = self.max_length - len(prompt)
        if room < (request.max_tokens or 1):
            asked = f" and {request.max_tokens} for the answer" if request.max_tokens else ""
            raise ApiError(
                400,
                f"{len(prompt)} tokens in the messages{asked}: more than the {self.max_length} that fit in all",
                code="context_length_exceeded",
                parameter="messages",
            )
        completion_id = uuid.uuid4().hex
        try:
            generation = await self._engine.generate(
                GenerationRequest(
                    session=completion_id,
                    prompt_ids=prompt,
                    max_tokens=request.max_tokens or room,
                    temperature=request.temperature,
                    top_p=request.top_p,
                    seed=request.seed if request.seed is not None else secrets.randbits(63),
                )
            )
        except EngineError as error:
            raise ApiError(500, f"the engine failed: {error}"[:300], code="engine_failure") from error
        return Answered(
            completion_id=completion_id,
            created=int(time.time()),
            model=self.name,
            text=self._layout.text(generation.token_ids),
            finished=self._layout.finished(generation.token_ids),
            opened=self._layout.opens_reasoning,
            offers_tools=request.offers_tools,
            prompt_tokens=len(prompt),
            completion_tokens=len(generation.token_ids),
        )

    def _prompt(self, request: ChatRequest) -> list[int]:
        messages = [message.for_template() for message in request.messages]
        tools = [tool.model_dump() for tool in request.tools or []] if request.offers_tools else None
        try:
            return self._layout.conversation(messages, tools)
        except EngineError as error:
            raise ApiError(400, str(error)[:300], code="invalid_messages", parameter="messages") from None
