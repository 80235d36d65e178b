"""One task's talk: whose failure it is when there is no reply, and what an answer must look like."""

from __future__ import annotations

from typing import Any

import pytest

from envace.benchmarks.protocol import Limits
from envace.endpoints.overflow import outgrown
from envace.errors import EndpointError
from harnesses.bfcl.replies import Reply
from harnesses.bfcl.talk import Bound, StoppedError, Talk

ENDPOINT = "endpoint http://127.0.0.1:1/v1: no reply (last: "


class Policy:
    """Says one thing, or fails."""

    def __init__(self, outcome: Reply | str) -> None:
        self.outcome = outcome

    def reply(self, question: Any) -> Reply:
        if isinstance(self.outcome, str):
            raise EndpointError(self.outcome)
        return self.outcome


def talk(outcome: Reply | str, task: str = "irrelevance_0") -> tuple[Talk, Bound]:
    bound = Bound(20)
    made = Talk(task, Policy(outcome), bound, Limits(), None)
    try:
        made.answer({"messages": [], "tools": []})
    except StoppedError:
        assert made.status != "scored"
    return made, bound


@pytest.mark.parametrize(
    "said",
    [
        'status 400: {"message": "1900 tokens in the messages and 512 for the answer: more than the 2048 that fit"}',
        'status 400: {"message": "This model\'s maximum context length is 2048',
        "status 413: too many input tokens",
        "status 500: the request exceeds the available context size",
    ],
)
def test_a_context_that_is_outgrown_is_the_models_failure(said: str) -> None:
    found, bound = talk(f"{ENDPOINT}{said})")
    assert found.status == "model_failure" and "outgrew the context" in str(found.reason)
    assert bound.count == 0  # it stops no run


@pytest.mark.parametrize(
    "said", ["status 400: unsupported parameter 'max_tokens'", "status 500: 3 tokens", "status 413: body too large"]
)
def test_other_refusals_are_the_infrastructures(said: str) -> None:
    found, bound = talk(f"{ENDPOINT}{said})")
    assert found.status == "infra_failure" and bound.count == 1


def test_a_status_given_apart_counts_as_one_in_the_text() -> None:
    assert outgrown("BadRequestError: too long by 12 tokens", 400) and not outgrown("12 tokens", 503)


@pytest.mark.parametrize(("task", "status"), [("memory_kv_0-customer-0", "scored"), ("irrelevance_0", "model_failure")])
def test_data_is_an_answer_only_where_it_is_demanded(task: str, status: str) -> None:
    found, _ = talk(Reply("{'answer': '42', 'context': 'It was said.'}"), task)
    assert found.status == status
