"""An engine that plays given texts in order: for tests and demonstrations, where the policy must be known."""

from __future__ import annotations

from collections.abc import Sequence

from envace.chat.layout import ChatLayout
from envace.engines.protocol import Generation, GenerationRequest
from envace.errors import EngineError


class ScriptedEngine:
    """Answers the n-th request of a session with the n-th text; records every request it saw."""

    def __init__(self, layout: ChatLayout, texts: Sequence[str]) -> None:
        self._layout, self._texts = layout, list(texts)
        self._next: dict[str, int] = {}
        self.requests: list[GenerationRequest] = []

    async def generate(self, request: GenerationRequest) -> Generation:
        """Raises EngineError when the script has run out."""
        self.requests.append(request)
        index = self._next.get(request.session, 0)
        self._next[request.session] = index + 1
        if index >= len(self._texts):
            raise EngineError(f"the script of {len(self._texts)} texts has run out")
        ids = self._layout.encode_output(self._texts[index])[: request.max_tokens]
        return Generation(token_ids=ids, log_probs=[0.0] * len(ids))
