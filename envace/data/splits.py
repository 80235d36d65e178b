"""Which split a row belongs to: its file's own, or a share carved out of the training file by a hash of the content."""

from __future__ import annotations

from typing import Any

from envace.data.canonical import user_texts
from envace.errors import ContractError
from envace.files import canonical_json, sha256_text

SPLITS = ("train", "validation", "heldout", "hard")
_SCALE = 1 << 48


def split_of(row: dict[str, Any], file: str, validation_share: float, heldout_share: float, salt: str) -> str:
    """The split of a row of `file` (train, heldout or hard). Shares apply to the training file only.

    The hash is over what the user says, so that two rows with the same conversation never come apart.
    """
    if file != "train":
        return file
    place = int(sha256_text(f"{salt} {canonical_json(user_texts(row))}")[:12], 16) / _SCALE
    if place < validation_share:
        return "validation"
    return "heldout" if place < validation_share + heldout_share else "train"


class LeakGuard:
    """Refuses a conversation that stands in two splits."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, str]] = {}

    def check(self, row: dict[str, Any], split: str, where: str) -> None:
        """Raises ContractError (check 35) where another split has a row in which the user says the same."""
        key = sha256_text(canonical_json(user_texts(row)))
        first_split, first_where = self._seen.setdefault(key, (split, where))
        if first_split != split:
            raise ContractError(
                f"{where} ({split}) and {first_where} ({first_split}) have the same user messages, so what is measured "
                "would have been trained on (check 35); remove one of them from its raw file"
            )
