"""Rows of several outputs: every output in one row, each row just what its last output's prompt and tokens are."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from envace.training.row_merging import chains, joined
from envace.types import Output, Role


def output(prompt: list[int], tokens: list[int], role: Role = Role.ACT) -> Output:
    return Output(role, 0, prompt, tokens, [-float(t) for t in tokens], "")


@st.composite
def rollouts(draw: st.DrawFn) -> list[Output]:
    """Histories that grow, stay, or are rewritten, in an alphabet so small that they collide."""
    ids = st.lists(st.integers(1, 2), min_size=1, max_size=3)
    made: list[Output] = []
    history = draw(ids)
    for _ in range(draw(st.integers(1, 6))):
        made.append(output(list(history), draw(ids)))
        then = draw(st.sampled_from(["grow", "grow", "grow", "beside", "rewrite"]))
        if then == "grow":
            history = [*history, *made[-1].token_ids, *draw(st.lists(st.integers(1, 2), max_size=2))]
        elif then == "rewrite":
            history = draw(ids)
    return made


@given(rollouts())
def test_every_output_is_in_one_row_and_reads_there_what_it_saw(outputs: list[Output]) -> None:
    rows = chains(outputs)
    assert sorted(i for row in rows for i in row) == list(range(len(outputs)))
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    for row in rows:
        members = [outputs[i] for i in row]
        response, mask, log_probs, spans = joined(members, trained=True)
        whole = [*members[0].prompt_ids, *response]
        start = len(members[0].prompt_ids)
        assert len(response) == len(mask) == len(log_probs)
        for member, (begin, end) in zip(members, spans, strict=True):
            assert whole[: start + begin] == member.prompt_ids and response[begin:end] == member.token_ids
            assert log_probs[begin:end] == member.log_probs and set(mask[begin:end]) == {1}
        assert sum(mask) == sum(len(m.token_ids) for m in members)
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        assert all(p == 0 for p, m in zip(log_probs, mask, strict=True) if not m)


def test_a_history_that_grows_is_one_row_and_one_that_is_rewritten_begins_another() -> None:
    first = output([1, 2], [3])
    second = output([1, 2, 3, 9], [4], Role.REHEARSE)
    rewritten = output([1, 9, 4], [5])
    after = output([1, 9, 4, 5, 9], [6])
    assert chains([first, second, rewritten, after]) == [[0, 1], [2, 3]]


def test_calls_answered_side_by_side_share_a_row_only_with_what_they_both_continue() -> None:
    act = output([1], [2])
    one, other = output([1, 2, 7], [3], Role.REHEARSE), output([1, 2, 8], [4], Role.REHEARSE)
    assert chains([act, one, other]) == [[0, 1], [2]]


def test_a_row_without_a_reward_has_mask_0() -> None:
    _, mask, _, _ = joined([output([1], [2]), output([1, 2, 9], [3])], trained=False)
    assert mask == [0, 0, 0]
