"""Builds the judge that the parameters ask for."""

from __future__ import annotations

from pathlib import Path

from envace.config import JudgeParams
from envace.rewards.hybrid_judge import HybridJudge
from envace.rewards.llm_judge import LlmJudge
from envace.rewards.protocol import BuiltJudge
from envace.rewards.rule_judge import RuleJudge
from envace.rewards.verdict_cache import VerdictCache


def build_judge(params: JudgeParams, cache_path: Path | None = None) -> BuiltJudge:
    """The judge of `reward.judge`. `cache_path`: a file in which verdicts of the endpoint outlive the process.

    Raises ConfigError where the endpoint's address is not allowed or its key is missing.
    """
    if params.kind == "rule":
        return RuleJudge()
    from envace.endpoints.client import ChatClient

    llm = LlmJudge(ChatClient(params.endpoint), params, VerdictCache(cache_path))
    return llm if params.kind == "llm" else HybridJudge(llm)
