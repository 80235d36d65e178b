"""The tiny base policy: rows that teach only the policy's own outputs, bounded batches, and a repeatable warm start."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from envace.chat.layout import ChatLayout, render_calls
from envace.config import BuildBaseModelParams, Params
from envace.data.sample import Demonstration, FaultRates, build_world, generate_demonstrations
from envace.errors import CheckpointError
from envace.files import sha256_tree
from envace.training.base_model.build import build_base_policies, save_policy
from envace.training.base_model.provide import copy_checkpoint, provide_base
from envace.training.base_model.rows import IGNORED, Row, demonstration_rows, token_budget_batches
from envace.training.base_model.tokenizer import SPECIAL_TOKENS, build_tokenizer
from envace.training.base_model.warm_start import fine_tune


@pytest.fixture(scope="module")
def faulty() -> list[Demonstration]:
    """Demonstrations with faults of both roles, so that the roles see different results."""
    return generate_demonstrations(build_world(0), 60, 0, FaultRates(0.15, 0.7, 0.5))


@pytest.fixture(scope="module")
def tiny(params: Params) -> BuildBaseModelParams:
    """A base model so small that building it takes seconds."""
    shape = {"hidden_size": 32, "layers": 1, "intermediate_size": 32, "heads": 2, "kv_heads": 1, "head_dim": 16}
    base = params.build_base_model
    return base.model_copy(
        update={
            "architecture": base.architecture.model_copy(update={**shape, "vocabulary": 400}),
            "demonstrations": 30,
            "clean": base.clean.model_copy(update={"steps": 3, "batch_tokens": 512}),
            "faulty": base.faulty.model_copy(update={"steps": 3, "batch_tokens": 512}),
        }
    )


def learned_texts(row: Row, layout: ChatLayout) -> list[str]:
    """The runs of learned tokens, decoded."""
    runs: list[list[int]] = [[]]
    for token, label in zip(row.ids, row.labels, strict=True):
        if label != IGNORED:
            assert label == token
            runs[-1].append(token)
        elif runs[-1]:
            runs.append([])
    assert all(layout.finished(run) for run in runs if run)
    return [layout.text(run) for run in runs if run]


def outputs(demonstration: Demonstration, role: str) -> list[str]:
    """What a role writes in a demonstration, in order; both roles for "both"."""
    turns = demonstration.rehearse if role == "rehearse" else demonstration.act
    texts = []
    for turn in turns:
        for calls, results in turn.steps:
            texts += [render_calls(list(calls))] if role != "rehearse" else []
            texts += list(results) if role != "act" else []
        texts += [turn.reply] if role != "rehearse" else []
    return texts


def test_a_clean_demonstration_teaches_both_roles_in_one_row(
    layout: ChatLayout, demonstrations: list[Demonstration]
) -> None:
    for demonstration in demonstrations:
        (row,) = demonstration_rows(layout, demonstration)
        assert learned_texts(row, layout) == outputs(demonstration, "both")


def test_each_role_learns_only_its_own_outputs_where_they_see_different_results(
    layout: ChatLayout, faulty: list[Demonstration]
) -> None:
    split = [d for d in faulty if d.act != d.rehearse]
    assert len(split) > 20
    for demonstration in split:
        rows = demonstration_rows(layout, demonstration)
        assert [learned_texts(r, layout) for r in rows] == [
            texts for role in ("act", "rehearse") if (texts := outputs(demonstration, role))
        ]


def test_a_row_is_the_conversation_as_the_template_renders_it(
    layout: ChatLayout, tokenizer: Any, demonstrations: list[Demonstration]
) -> None:
    for demonstration in demonstrations:
        messages: list[dict[str, Any]] = []
        for turn in demonstration.act:
            messages.append({"role": "user", "content": turn.user_message})
            for calls, results in turn.steps:
                messages.append({"role": "assistant", "content": render_calls(list(calls))})
                messages += [{"role": "tool", "content": r} for r in results]
            messages.append({"role": "assistant", "content": turn.reply})
        text = tokenizer.apply_chat_template(messages, tools=[t.openai() for t in demonstration.tools], tokenize=False)
        (row,) = demonstration_rows(layout, demonstration)
        assert row.ids == tokenizer.encode(text, add_special_tokens=False)


@pytest.mark.parametrize("budget", [400, 1000, 4096])
def test_batches_keep_to_the_token_budget_and_lose_nothing(
    layout: ChatLayout, demonstrations: list[Demonstration], budget: int
) -> None:
    rows = [row for d in demonstrations for row in demonstration_rows(layout, d)]
    assert max(len(r.ids) for r in rows) <= budget
    one_pass = 0
    while True:  # the number of batches in one pass over all rows
        one_pass += 1
        batches = token_budget_batches(rows, budget, one_pass, 0, pad_id=0)
        if sum(len(b["input_ids"]) for b in batches) >= len(rows):
            break
    found = []
    for batch in batches:
        ids, labels = batch["input_ids"], batch["labels"]
        assert ids.shape == labels.shape and ids.numel() <= budget
        for i in range(len(ids)):
            found.append(tuple(ids[i].tolist()))
            learned = labels[i] != IGNORED
            assert bool((labels[i][learned] == ids[i][learned]).all())
    widths = {len(r.ids): None for r in rows}
    padded = {tuple(r.ids) + (0,) * (width - len(r.ids)) for r in rows for width in widths if width >= len(r.ids)}
    assert len(found) == len(rows) and set(found) <= padded
    total = sum(int((b["labels"] != IGNORED).sum()) for b in batches)
    assert total == sum(label != IGNORED for r in rows for label in r.labels)


def test_batches_depend_on_the_seed_alone(layout: ChatLayout, demonstrations: list[Demonstration]) -> None:
    rows = [row for d in demonstrations for row in demonstration_rows(layout, d)]

    def make(seed: int, count: int = 30) -> list[list[int]]:
        return [b["input_ids"].flatten().tolist() for b in token_budget_batches(rows, 600, count, seed, 0)]

    assert make(0) == make(0) and make(0) != make(1) and len(make(0, count=7)) == 7
    assert make(0, count=0) == []


def test_the_same_demonstrations_give_the_same_tokenizer(demonstrations: list[Demonstration], tokenizer: Any) -> None:
    again = build_tokenizer(demonstrations, 600, 2048)
    assert again.get_vocab() == tokenizer.get_vocab() and len(again) <= 600
    for token in SPECIAL_TOKENS:
        assert len(again.encode(token, add_special_tokens=False)) == 1
    for text in ("Zażółć gęślą jaźń", "東京 😀", '{"a": [1, 2.5, null]}', "\x00\x7f\n\t "):
        assert again.decode(again.encode(text, add_special_tokens=False)) == text


def fine_tuned(model: Any, layout: ChatLayout, demonstrations: list[Demonstration], stage: Any) -> list[float]:
    rows = [row for d in demonstrations for row in demonstration_rows(layout, d)]
    batches = token_budget_batches(rows, 600, 3, 0, pad_id=0)
    return fine_tune(model, batches, stage, seed=0, what="test")


def test_three_steps_of_the_warm_start_are_repeatable_bit_for_bit(
    random_model: Callable[..., Any], layout: ChatLayout, demonstrations: list[Demonstration], params: Params
) -> None:
    first, second, stage = random_model(), random_model(), params.build_base_model.clean
    before = copy.deepcopy(first.state_dict())
    losses = fine_tuned(first, layout, demonstrations, stage)
    assert losses == fine_tuned(second, layout, demonstrations, stage)
    for (name, one), other in zip(first.state_dict().items(), second.state_dict().values(), strict=True):
        assert torch.equal(one, other), name
    assert any(not torch.equal(before[name], value) for name, value in first.state_dict().items())
    assert not first.training


def test_the_warm_start_minimises_the_models_own_loss(
    random_model: Callable[..., Any], layout: ChatLayout, demonstrations: list[Demonstration], params: Params
) -> None:
    """Against the loss of transformers, padding masked: padded positions and ignored labels must not matter."""
    model, stage = random_model(), params.build_base_model.clean
    rows = [row for d in demonstrations[:12] for row in demonstration_rows(layout, d)]
    batches = token_budget_batches(rows, 600, 1, 0, pad_id=0)
    with torch.no_grad():
        wanted = model(
            input_ids=batches[0]["input_ids"],
            attention_mask=(batches[0]["input_ids"] != 0).long(),
            labels=batches[0]["labels"],
        ).loss.item()
    (loss,) = fine_tune(model, batches, stage, seed=0, what="test")
    assert loss == pytest.approx(wanted, abs=1e-4)


def test_no_steps_leave_the_model_as_it_was(random_model: Callable[..., Any], params: Params) -> None:
    model = random_model()
    before = copy.deepcopy(model.state_dict())
    assert fine_tune(model, [], params.build_base_model.clean, seed=0, what="test") == []
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_the_policies_differ_by_their_stages_and_are_repeatable(tiny: BuildBaseModelParams, params: Params) -> None:
    one = build_base_policies(tiny, params.fetch_data.sample)
    two = build_base_policies(tiny, params.fetch_data.sample)
    assert one.losses == two.losses and set(one.losses) == {"clean", "faulty", "control"}
    flat = {
        name: torch.cat([p.flatten() for p in getattr(one, name).parameters()]) for name in ("clean", "base", "control")
    }
    for name, weights in flat.items():
        assert torch.equal(weights, torch.cat([p.flatten() for p in getattr(two, name).parameters()]))
    assert not torch.equal(flat["clean"], flat["base"]) and not torch.equal(flat["base"], flat["control"])


def test_a_tiny_base_is_provided_with_its_references_and_a_record(
    tiny: BuildBaseModelParams, params: Params, tmp_path: Path
) -> None:
    from envace.engines.load import load_policy

    records = []
    for name in ("a", "b"):
        record = provide_base(tiny, params.fetch_data.sample, tmp_path / name / "base", tmp_path / name / "references")
        records.append(record)
    assert records[0] == records[1] and sha256_tree(tmp_path / "a") == sha256_tree(tmp_path / "b")
    index = json.loads((tmp_path / "a/references/index.json").read_text())
    assert index == {"policies": ["clean", "control"]}
    for folder in ("base", "references/clean", "references/control"):
        policy = load_policy(tmp_path / "a" / folder, max_slots=1, max_length=100)
        assert sum(p.numel() for p in policy.engine.model.parameters()) == records[0]["parameters"]
    assert "faults" in records[0]["warm_start"]


def test_a_given_checkpoint_is_copied_without_anything_that_could_run(
    tiny: BuildBaseModelParams, params: Params, random_model: Callable[..., Any], tokenizer: Any, tmp_path: Path
) -> None:
    source = tmp_path / "given"
    save_policy(random_model(), tokenizer, source)
    (source / "modeling_hostile.py").write_text("raise SystemExit")
    (source / "pytorch_model.bin").write_bytes(b"pickle")
    asked = tiny.model_copy(update={"source": "folder", "path": str(source)})
    record = provide_base(asked, params.fetch_data.sample, tmp_path / "base", tmp_path / "references")
    copied = {p.name for p in (tmp_path / "base").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= copied
    assert not copied & {"modeling_hostile.py", "pytorch_model.bin"}
    assert (source / "model.safetensors").read_bytes() == (tmp_path / "base/model.safetensors").read_bytes()
    assert record["source"] == "folder" and "none" in record["warm_start"]
    assert json.loads((tmp_path / "references/index.json").read_text()) == {"policies": []}


def test_a_checkpoint_that_cannot_be_used_is_refused(
    random_model: Callable[..., Any], tokenizer: Any, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        copy_checkpoint(tmp_path / "missing", tmp_path / "a")
    source = tmp_path / "pickled"
    save_policy(random_model(), tokenizer, source)
    (source / "model.safetensors").rename(source / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="safetensors"):
        copy_checkpoint(source, tmp_path / "b")
