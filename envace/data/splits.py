"""Which split a row belongs to: its file's own, or a share carved out of the training file by a hash of the content."""

from __future__ import annotations

from typing import Any

from envace.config import PrepareDataParams
from envace.data.canonical import user_texts
from envace.errors import ContractError
from envace.files import canonical_json, digest, sha256_text

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
    """Refuses a conversation that stands in two splits. Holds one digest a conversation."""

    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[str, str, int]] = {}

    def check(self, row: dict[str, Any], split: str, file: str, index: int) -> None:
        """Raises ContractError (check 35) where another split has a row in which the user says the same."""
        key = digest(canonical_json(user_texts(row)))
        first_split, first_file, first_index = self._seen.setdefault(key, (split, file, index))
        if first_split != split:
            raise ContractError(
                f"row {index} of the raw file {file} ({split}, {row['uuid']}) and row {first_index} of {first_file} "
                f"({first_split}) have the same user messages, so what is measured would have been trained on (check "
                "35); remove one of them (rows count from 0)"
            )


def check_split_sizes(sizes: dict[str, int], heldout_share: float, params: PrepareDataParams) -> None:
    """36: the parts of the training file have about the shares that were asked for. `sizes` counts its rows by split.

    Raises ContractError. From `min_rows_for_share_error` rows up; a few rows may fall anywhere.
    """
    rows = sum(sizes.values())
    if rows < params.min_rows_for_share_error:
        return
    wanted = {"validation": params.validation_share, "heldout": heldout_share}
    wanted["train"] = 1 - sum(wanted.values())
    for split, share in wanted.items():
        actual = sizes.get(split, 0) / rows
        if abs(actual - share) > params.max_share_error:
            raise ContractError(
                f"the split {split} has {actual:.2%} of the training file's {rows} rows, {share:.2%} were asked for "
                "(check 36); choose another prepare_data.salt, or raise prepare_data.max_share_error"
            )
