"""Which checkpoint plays which role: one for both, or one each (train_policy.method per_role)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from envace.engines.protocol import Generation, GenerationRequest, TokenEngine
from envace.errors import DataError
from envace.files import sha256_tree
from envace.types import Role

_EXPORTS = ("last", "best")
_SECOND = "rehearse"  # how train_policy names the second policy's folders, after a dash


@dataclass(frozen=True, slots=True)
class Played:
    """The checkpoint that acts, and the one that rehearses where that is another."""

    act: Path
    rehearse: Path | None = None


class EngineByRole:
    """Two engines as one, each asked for its own role."""

    def __init__(self, act: TokenEngine, rehearse: TokenEngine) -> None:
        self._engines = {Role.ACT: act, Role.REHEARSE: rehearse}

    async def generate(self, request: GenerationRequest) -> Generation:
        """Sample one output with the policy of the request's role."""
        return await self._engines[request.role].generate(request)


def trained_policy(policy: Path, trained: Path) -> Played:
    """The exported policy, with the one that rehearses beside it where the training made two.

    `trained` holds best/ and last/, and best-rehearse/ and last-rehearse/ of two policies; `policy` is a copy of one.
    Raises DataError where it is a copy of neither.
    """
    seconds = {name: trained / f"{name}-{_SECOND}" for name in _EXPORTS}
    if not any(second.is_dir() for second in seconds.values()):
        return Played(policy)
    exported = sha256_tree(policy)
    for name, second in seconds.items():
        if second.is_dir() and sha256_tree(trained / name) == exported:
            return Played(policy, second)
    raise DataError(
        f"{policy}: is neither {trained}/last nor {trained}/best, so which policy rehearses for it is unknown; "
        "run `envace run --force train_policy`"
    )
