"""The oracle: replays the gold answers through the same path as a policy's, so that it shows the harness's ceiling."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping
from typing import Any

from bfcl_eval.constants.eval_config import MULTI_TURN_FUNC_DOC_PATH
from bfcl_eval.constants.executable_backend_config import MULTI_TURN_FUNC_DOC_FILE_MAPPING
from bfcl_eval.utils import (
    is_agentic,
    is_java,
    is_js,
    is_memory_prereq,
    is_multi_turn,
    is_relevance_or_irrelevance,
    load_dataset_entry,
    load_file,
    load_ground_truth_entry,
)

from harnesses.bfcl.literals import java_literal, javascript_literal
from harnesses.bfcl.replies import Call, Reply

Calls = list[tuple[str, dict[str, Any]]]


class GoldAgent:
    """Knows the tasks of some categories and what is right for each."""

    def __init__(self, categories: Iterable[str]) -> None:
        self._entries: dict[str, dict[str, Any]] = {}
        self._gold: dict[str, Any] = {}
        for category in categories:
            entries = load_dataset_entry(category, include_prereq=False, include_language_specific_hint=False)
            gold = [] if is_relevance_or_irrelevance(category) else load_ground_truth_entry(category)
            self._entries |= {entry["id"]: entry for entry in entries}
            self._gold |= {entry["id"]: answer["ground_truth"] for entry, answer in zip(entries, gold, strict=False)}
        self._parameters = _parameters_by_tool()

    def reply(self, question: Mapping[str, Any]) -> Reply:
        """The gold calls at the first step of a turn, words after that."""
        task = question["id"]
        if is_memory_prereq(task):
            return Reply("Noted.")
        if is_agentic(task):
            return Reply(f"The answer is {self._gold[task][0]}")
        if is_multi_turn(task):
            calls = [self._executable(c) for c in self._gold[task][question["turn"]]] if question["step"] == 0 else []
        elif "irrelevance" in task:
            calls = []
        elif "relevance" in task:  # any call will do
            calls = [(self._entries[task]["function"][0]["name"], {})]
        else:
            calls = _acceptable(self._entries[task], self._gold[task])
        made = [Call(f"call_{n}", name.replace(".", "_"), json.dumps(a)) for n, (name, a) in enumerate(calls)]
        return Reply(None if made else "Done.", made)

    def _executable(self, source: str) -> tuple[str, dict[str, Any]]:
        """A gold call, which is Python source, as name and named arguments."""
        call = ast.parse(source.strip(), mode="eval").body
        assert isinstance(call, ast.Call)
        name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr  # type: ignore[attr-defined]
        placed = zip(self._parameters[name], call.args, strict=False)
        arguments = {key: ast.literal_eval(value) for key, value in placed}
        return name, arguments | {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}


def _parameters_by_tool() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for file in MULTI_TURN_FUNC_DOC_FILE_MAPPING.values():
        for tool in load_file(MULTI_TURN_FUNC_DOC_PATH / file):
            found.setdefault(tool["name"], list(tool["parameters"]["properties"]))
    return found


def _acceptable(entry: dict[str, Any], gold: list[dict[str, Any]]) -> Calls:
    """One of the accepted answers: the first alternative of each argument; what may be left out is."""
    tools = {tool["name"]: tool["parameters"] for tool in entry["function"]}
    made: Calls = []
    for answer in gold:
        ((name, parameters),) = answer.items()
        properties, required = tools[name]["properties"], tools[name]["required"]
        arguments = {}
        for key, alternatives in parameters.items():
            if "" in alternatives and key not in required:
                continue
            declared = properties.get(key, {})  # two gold answers name a parameter that their tool does not have
            kind, of = declared.get("type", ""), declared.get("items", {}).get("type")
            value = _chosen(_first(alternatives))
            if value == "" and kind == "array":  # the gold of a required list is an empty text
                value = []
            if is_java(entry["id"]):
                value = java_literal(value, kind, of)
            elif is_js(entry["id"]):
                value = javascript_literal(value, kind)
            arguments[key] = value
        made.append((name, arguments))
    return made


def _chosen(value: Any) -> Any:
    """Objects inside an answer hold alternatives again."""
    if isinstance(value, dict):
        return {key: _chosen(_first(item)) for key, item in value.items() if _first(item) != ""}
    return [_chosen(item) for item in value] if isinstance(value, list) else value


def _first(alternatives: Any) -> Any:
    if not isinstance(alternatives, list):
        return alternatives
    return next((item for item in alternatives if item != ""), "")
