"""A refused request, in the shape in which the OpenAI API tells it."""

from __future__ import annotations

from typing import Any

from envace.errors import EnvaceError


class ApiError(EnvaceError):
    """A request that gets no completion. `code` is a word for programs, `parameter` the key that is wrong."""

    def __init__(self, status: int, message: str, *, code: str | None = None, parameter: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.parameter = status, code, parameter

    def body(self) -> dict[str, Any]:
        """The JSON body of the response."""
        kind = "invalid_request_error" if self.status < 500 and self.status != 429 else "server_error"
        error = {"message": str(self), "type": kind, "param": self.parameter, "code": self.code}
        return {"error": error}
