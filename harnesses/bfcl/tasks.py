"""Which tasks a run is about: the categories this installation can run, the reasons for the others, and their ids."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bfcl_eval.constants.category_mapping import ALL_SCORING_CATEGORIES
from bfcl_eval.utils import extract_test_category_from_id, is_memory, is_web_search, load_dataset_entry

from envace.benchmarks.protocol import Spec
from envace.errors import BenchmarkError

EMBEDDINGS = "all-MiniLM-L6-v2"


@dataclass(frozen=True, slots=True)
class Plan:
    """wanted: ids by category, of what is run. missing: ids by category of what cannot be, with the reason."""

    wanted: dict[str, list[str]]
    missing: dict[str, tuple[str, list[str]]]
    chosen_by_id: bool

    @property
    def categories(self) -> list[str]:
        """What is run."""
        return list(self.wanted)


def plan(spec: Spec, folder: Path) -> Plan:
    """What `spec` asks for. Raises BenchmarkError where it names what the harness does not have."""
    chosen = spec.categories
    if spec.ids is not None:
        chosen = list(dict.fromkeys(extract_test_category_from_id(each) for each in spec.ids))
    unknown = sorted(set(chosen or ()) - set(ALL_SCORING_CATEGORIES))
    if unknown:
        raise BenchmarkError(f"no categories of BFCL v4: {', '.join(unknown)}")
    wanted: dict[str, list[str]] = {}
    missing: dict[str, tuple[str, list[str]]] = {}
    for category in ALL_SCORING_CATEGORIES if chosen is None else chosen:
        ids = [entry["id"] for entry in load_dataset_entry(category, include_prereq=False)]
        if spec.ids is not None:
            mine = [each for each in spec.ids if extract_test_category_from_id(each) == category]
            if absent := sorted(set(mine) - set(ids)):
                raise BenchmarkError(f"no tasks of BFCL v4: {', '.join(absent)}")
            ids = mine
        reason = lacking(category, folder)
        if reason:
            missing[category] = (reason, ids)
        else:
            wanted[category] = ids
    return Plan(wanted, missing, spec.ids is not None)


def lacking(category: str, folder: Path) -> str | None:
    """What this installation lacks for a category, or None."""
    if is_web_search(category):
        return "needs the internet and a SerpAPI key, which the sandbox of executed tools has not"
    if category == "memory_vector":
        modules = [m for m in ("sentence_transformers", "faiss") if importlib.util.find_spec(m) is None]
        if modules:
            return f"needs {' and '.join(modules)}, which the lean installation leaves out"
        if not (folder / EMBEDDINGS).is_dir():
            return f"needs the embedding model as folder {EMBEDDINGS} in the run's folder"
    return None


def entries_to_generate(plan: Plan) -> dict[str, list[str]]:
    """Ids as the harness's id file wants them: with the conversations that fill the memory of chosen memory tasks."""
    found: dict[str, list[str]] = {}
    for category, ids in plan.wanted.items():
        found[category] = list(ids)
        if is_memory(category):
            chosen: list[dict[str, Any]] = [e for e in load_dataset_entry(category) if e["id"] in set(ids)]
            before = dict.fromkeys(each for entry in chosen for each in entry["depends_on"])
            found[category] = [*before, *ids]
    return found
