"""What training changed on the held-out tasks: the trained policy against the one it started from."""

from __future__ import annotations

from typing import Any


def margins(base: dict[str, Any], trained: dict[str, Any]) -> dict[str, float | None]:
    """Differences of held-out figures (trained minus base), and the ratio of malformed rehearsals.

    None where either side has no such figure: never a 0 in its place.
    """
    return {
        "reward": _difference(base, trained, "true", "reward"),
        "success": _difference(base, trained, "true", "success"),
        "rehearsed_reward": _difference(base, trained, "rehearsed", "reward"),
        "fidelity_exact": _difference(base, trained, "fidelity", "exact"),
        "fidelity_error_recall": _difference(base, trained, "fidelity", "error_recall"),
        "malformed_ratio": _ratio(base, trained),
    }


def _pair(base: dict[str, Any], trained: dict[str, Any], part: str, figure: str) -> tuple[Any, Any]:
    return (base.get(part) or {}).get(figure), (trained.get(part) or {}).get(figure)


def _difference(base: dict[str, Any], trained: dict[str, Any], part: str, figure: str) -> float | None:
    before, after = _pair(base, trained, part, figure)
    return None if before is None or after is None else round(after - before, 6)


def _ratio(base: dict[str, Any], trained: dict[str, Any]) -> float | None:
    before, after = _pair(base, trained, "rehearsed", "malformed_share")
    return round(after / before, 6) if before and after is not None else None
