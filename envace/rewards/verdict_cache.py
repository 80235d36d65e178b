"""Verdicts already given, in memory and, if wanted, in a file of JSON lines, so that nothing is asked twice."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from pathlib import Path

from envace.files import canonical_json, digest
from envace.strict_json import parse_object
from envace.types import Verdict

MAX_VERDICTS = 200_000


class VerdictCache:
    """A bounded cache: the verdict used longest ago is dropped first. Unknown verdicts are never kept.

    With a `path`, what it holds is read at the start and each new verdict is appended as one line by one write, so
    several processes can share the file. A line that is cut or strange is skipped; nothing in the file is run.
    """

    def __init__(self, path: Path | None = None, max_verdicts: int = MAX_VERDICTS) -> None:
        self._verdicts: OrderedDict[bytes, Verdict] = OrderedDict()
        self._path, self._max = path, max_verdicts
        if path is not None and path.is_file():
            self._load(path)

    @staticmethod
    def key(*parts: str) -> bytes:
        """16 bytes that stand for a judge model, its settings and a whole question."""
        return digest(canonical_json(list(parts)))

    def get(self, key: bytes) -> Verdict | None:
        """The verdict kept under `key`, or None."""
        verdict = self._verdicts.get(key)
        if verdict is not None:
            self._verdicts.move_to_end(key)
        return verdict

    def put(self, key: bytes, verdict: Verdict) -> None:
        """Keep a verdict, in the file as well. UNKNOWN is not kept: the next time may be better."""
        if verdict is Verdict.UNKNOWN or self._verdicts.get(key) is verdict:
            return
        self._remember(key, verdict)
        if self._path is not None:
            self._append(self._path, json.dumps({"key": key.hex(), "verdict": verdict.value}))

    def __len__(self) -> int:
        return len(self._verdicts)

    def _remember(self, key: bytes, verdict: Verdict) -> None:
        self._verdicts[key] = verdict
        self._verdicts.move_to_end(key)
        while len(self._verdicts) > self._max:
            self._verdicts.popitem(last=False)

    def _load(self, path: Path) -> None:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                entry = parse_object(line) or {}
                key, verdict = entry.get("key"), entry.get("verdict")
                known = verdict in (Verdict.PASS.value, Verdict.FAIL.value)
                if known and isinstance(key, str) and len(key) == 32 and set(key) <= set("0123456789abcdef"):
                    self._remember(bytes.fromhex(key), Verdict(verdict))

    def _append(self, path: Path, line: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            # the line end comes first as well: what a killed writer cut short must not swallow this line
            os.write(file, f"\n{line}\n".encode())
        finally:
            os.close(file)
