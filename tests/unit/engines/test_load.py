"""Opening a policy folder: safetensors only, nothing that runs code, errors that name the folder."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envace.engines.load import load_policy
from envace.engines.protocol import Generation, GenerationRequest
from envace.errors import EngineError


@pytest.fixture
def folder(saved_policy: Path, tmp_path: Path) -> Path:
    """A copy of it to spoil."""
    return shutil.copytree(saved_policy, tmp_path / "policy")


def test_a_saved_policy_answers_as_it_did_in_memory(
    saved_policy: Path,
    engine_of: Callable[..., Any],
    answer: Callable[..., list[Generation]],
    requests_of: Callable[..., Any],
) -> None:
    requests: list[GenerationRequest] = requests_of(4)
    loaded = load_policy(saved_policy, max_slots=4, max_length=400)
    assert [g.token_ids for g in answer(loaded.engine, requests)] == [
        g.token_ids for g in answer(engine_of(), requests)
    ]
    assert loaded.layout.text(loaded.layout.encode_output("Łódź")) == "Łódź"


def cut_weights(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])


def empty_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"")


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def no_configuration(folder: Path) -> None:
    (folder / "config.json").unlink()


def broken_configuration(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def unknown_architecture(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "no-such-model"}')


def no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def broken_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{")


SPOILED = [
    cut_weights,
    empty_weights,
    no_weights,
    no_configuration,
    broken_configuration,
    unknown_architecture,
    no_tokenizer,
    broken_tokenizer,
]


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda f: f.__name__)
def test_a_folder_that_cannot_be_loaded_is_one_clear_error(folder: Path, spoil: Callable[[Path], None]) -> None:
    spoil(folder)
    with pytest.raises(EngineError) as caught:
        load_policy(folder, max_slots=2, max_length=100)
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)


def test_pickled_weights_are_never_opened(folder: Path, tmp_path: Path) -> None:
    mark = tmp_path / "was-run"

    class Hostile:
        def __reduce__(self) -> Any:
            return Path.touch, (mark,)

    no_weights(folder)
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Hostile()))
    with pytest.raises(EngineError):
        load_policy(folder, max_slots=2, max_length=100)
    assert not mark.exists()


def test_code_in_the_folder_is_never_run(folder: Path, tmp_path: Path) -> None:
    import json

    mark = tmp_path / "was-run"
    (folder / "hostile.py").write_text(f"open({str(mark)!r}, 'w')\nclass Model: ...\n")
    configuration = json.loads((folder / "config.json").read_text())
    configuration |= {"model_type": "hostile", "auto_map": {"AutoConfig": "hostile.Model"}}
    (folder / "config.json").write_text(json.dumps(configuration))
    with pytest.raises(EngineError):
        load_policy(folder, max_slots=2, max_length=100)
    assert not mark.exists()
