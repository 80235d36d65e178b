"""The base model from a hub on this machine: the pinned revision, the allowed files, and what can be wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from envace.config import BuildBaseModelParams, ModelHubParams, Params
from envace.errors import CheckpointError, DataError, EnvaceError
from envace.training.base_model.provide import provide_base
from tests.unit.fake_hub import REVISION, TOKEN, Hub, serving


@pytest.fixture
def hub(saved_policy: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with one model, and beside it files that could run code."""
    files = {path.name: path.read_bytes() for path in saved_policy.iterdir()}
    files |= {"modeling_hostile.py": b"raise SystemExit", "pytorch_model.bin": b"pickle", "README.md": b"# a model"}
    files |= {"original/model.safetensors": b"another", "../../outside.safetensors": b"outside", ".gitattributes": b""}
    model = Hub(place="someone/model", files=files, large=("model.safetensors",), licence="apache-2.0")
    with serving(model, monkeypatch) as running:
        yield running


@pytest.fixture
def asked(params: Params) -> Callable[..., BuildBaseModelParams]:
    def make(**changes: Any) -> BuildBaseModelParams:
        hub = ModelHubParams(repository="someone/model", revision=REVISION).model_copy(update=changes)
        return params.build_base_model.model_copy(update={"source": "hub", "hub": hub})

    return make


def provided(asked: BuildBaseModelParams, params: Params, folder: Path) -> dict[str, Any]:
    return provide_base(asked, params.fetch_data.sample, folder / "base", folder / "references")


def test_a_model_comes_with_its_record_and_without_anything_that_could_run(
    hub: Hub, asked: Callable[..., BuildBaseModelParams], params: Params, saved_policy: Path, tmp_path: Path
) -> None:
    from envace.engines.load import load_policy

    record = provided(asked(), params, tmp_path)
    assert record == {
        "source": "hub",
        "repository": "someone/model",
        "revision": REVISION,
        "card_licence": "apache-2.0",
        "warm_start": "none: a checkpoint was given",
        "losses": {},
    }
    found = {p.name: p.read_bytes() for p in (tmp_path / "base").iterdir()}
    assert found == {p.name: p.read_bytes() for p in saved_policy.iterdir()}
    assert json.loads((tmp_path / "references/index.json").read_text()) == {"policies": []}
    assert all(REVISION in path for path in hub.asked) and set(hub.authorizations) == {f"Bearer {TOKEN}"}
    assert not list(tmp_path.rglob("outside*"))
    load_policy(tmp_path / "base", max_slots=1, max_length=100)


def _without(*names: str) -> Callable[[Hub], None]:
    def apply(hub: Hub) -> None:
        for name in names:
            del hub.files[name]

    return apply


def _with(name: str, data: bytes) -> Callable[[Hub], None]:
    return lambda hub: hub.files.update({name: data})


def _no_template(hub: Hub) -> None:
    hub.files.pop("chat_template.jinja", None)
    config = json.loads(hub.files["tokenizer_config.json"])
    config.pop("chat_template", None)
    hub.files["tokenizer_config.json"] = json.dumps(config).encode()


INDEX = json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors"}}).encode()


@pytest.mark.parametrize(
    ("change", "parameters", "error", "why"),
    [
        (_without("config.json"), {}, CheckpointError, r"someone/model at .*: no config\.json"),
        (_without("model.safetensors"), {}, CheckpointError, "pickled weights are not loaded"),
        (_without("tokenizer.json"), {}, CheckpointError, r"no tokenizer\.json"),
        (_no_template, {}, CheckpointError, "no chat template"),
        (_with("model.safetensors.index.json", INDEX), {}, CheckpointError, "00001-of-00002.*is not there"),
        (_with("model.safetensors.index.json", b"[]"), {}, CheckpointError, "no index of weights"),
        (lambda hub: setattr(hub, "spoil", lambda data: data[:-1] + b"x"), {}, DataError, "have the digest"),
        (lambda hub: None, {"revision": "main"}, DataError, r"build_base_model\.hub\.revision is 'main'"),
        (lambda hub: None, {"revision": "f" * 40}, DataError, r"correct build_base_model\.hub\.revision"),
        (lambda hub: None, {"repository": "someone/else"}, DataError, r"correct build_base_model\.hub\.repository"),
        (lambda hub: setattr(hub, "refusal", (403, "GatedRepo")), {}, DataError, "gated: accept its conditions"),
        (lambda hub: setattr(hub, "page", b"<html>"), {}, DataError, "answers, but not as the hub does"),
    ],
)
def test_what_goes_wrong_is_one_clear_error_and_leaves_nothing(
    hub: Hub,
    asked: Callable[..., BuildBaseModelParams],
    params: Params,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Hub], None],
    parameters: dict[str, Any],
    error: type[EnvaceError],
    why: str,
) -> None:
    from pipeline_steps.build_base_model import run

    monkeypatch.chdir(tmp_path)
    change(hub)
    with pytest.raises(error, match=why) as raised:
        run(params.model_copy(update={"build_base_model": asked(**parameters)}))
    assert TOKEN not in str(raised.value)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_a_repository_and_a_commit_must_be_given(params: Params) -> None:
    from envace.config import parse_params

    raw = params.model_dump()
    raw["build_base_model"]["source"] = "hub"
    with pytest.raises(EnvaceError, match=r"hub\.repository and hub\.revision must be given"):
        parse_params(raw, "params")
