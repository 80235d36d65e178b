"""τ²-bench v1.0.1, from a checkout. In retail a model judges some of what was said; upstream it is one fixed model."""

from __future__ import annotations

from typing import Any

import tau2.evaluator.evaluator_nl_assertions as nl_assertions
from tau2.data_model.simulation import NLAssertionCheck, TextRunConfig
from tau2.data_model.tasks import RewardType
from tau2.registry import registry
from tau2.runner.build import build_text_orchestrator
from tau2.runner.simulation import run_simulation

from envace.benchmarks.protocol import REFERENCE_AGENTS, Spec
from harnesses.tau2.line import AGREEING, SCRIPTED, Line
from harnesses.tau2.settings import NAME, conversation, has_model_user, model_call, participants


class CheckoutLine(Line):
    """A conversation that broke leaves its denominator."""

    broken_score = None
    broken_reason = "infrastructure_error"

    def __init__(self, spec: Spec, digests: dict[str, str]) -> None:
        super().__init__(spec, digests)
        agent, user = participants(spec)

        def build(tools: Any, domain_policy: str, *, llm: Any, llm_args: Any, task: Any, **_: Any) -> Any:
            gold = {"task": task} if spec.agent.kind == "oracle" else {}
            return agent(tools=tools, domain_policy=domain_policy, llm=llm, llm_args=llm_args, **gold)

        registry.register_agent_factory(build, NAME)
        registry.register_user(user, NAME)
        self.models = {
            "user": spec.user.model if spec.user and has_model_user(spec) else SCRIPTED,
            "judge": self._set_judge(),
        }

    def judged(self, task: Any) -> bool:
        """Whether a model has a say in the score of this task."""
        return RewardType.NL_ASSERTION in task.evaluation_criteria.reward_basis

    def simulate(self, domain: str, task: Any, seed: int) -> Any:
        """One conversation, scored by the harness."""
        config = TextRunConfig(domain=domain, **conversation(self.spec))
        return run_simulation(build_text_orchestrator(config, task, seed=seed))

    def _set_judge(self) -> str | None:
        """The judge's model; a stand-in for reference agents alone; null (and then such tasks are not run)."""
        if self.spec.judge is not None:
            model, arguments = model_call(self.spec.judge)
            nl_assertions.DEFAULT_LLM_NL_ASSERTIONS = model
            nl_assertions.DEFAULT_LLM_NL_ASSERTIONS_ARGS = arguments
            return self.spec.judge.model
        if self.spec.agent.kind not in REFERENCE_AGENTS:
            return None
        nl_assertions.NLAssertionsEvaluator.evaluate_nl_assertions = classmethod(_agree)
        return AGREEING


def _agree(cls: Any, trajectory: Any, assertions: list[str]) -> list[NLAssertionCheck]:
    return [NLAssertionCheck(nl_assertion=each, met=True, justification=AGREEING) for each in assertions]
