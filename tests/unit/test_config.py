"""Wrong parameters: every fault is told, at once, with its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from envace.config import Params, load_params, parse_params
from envace.errors import ConfigError


@pytest.fixture
def raw(project_root: Path) -> dict[str, Any]:
    return yaml.safe_load((project_root / "params.yaml").read_text(encoding="utf-8"))


def told(raw: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_params(raw, "params.yaml")
    return str(caught.value)


def test_the_shipped_file_is_right(project_root: Path) -> None:
    assert load_params(project_root / "params.yaml").profile == "tiny-cpu"


def test_every_key_of_the_model_is_in_the_shipped_file(raw: dict[str, Any], params: Params) -> None:
    assert keys(params.model_dump()) == keys(raw)


def test_an_unknown_key_is_named(raw: dict[str, Any]) -> None:
    raw["train_policy"]["learnin_rate"] = 1
    assert told(raw) == (
        "params.yaml: 1 wrong key(s)\n  - train_policy.learnin_rate: unknown key; remove it or correct its spelling"
    )


@pytest.mark.parametrize("turns", [[4, 2], [1, 9], [2], [0, 3], 4])
def test_turns_that_are_no_range_are_refused(raw: dict[str, Any], turns: Any) -> None:
    raw["fetch_data"]["sample"]["turns"] = turns
    message = told(raw)
    assert "fetch_data.sample" in message and "1 wrong key(s)" in message


def test_a_missing_key_is_named(raw: dict[str, Any]) -> None:
    del raw["fetch_data"]["sample"]["seed"]
    assert "fetch_data.sample.seed: missing; add it" in told(raw)


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("train_policy", "steps", "many"),
        ("train_policy", "steps", 0),
        ("train_policy", "learning_rate", -1e-3),
        ("prepare_data", "heldout_share", 1.5),
        ("rollout", "validation", "perhaps"),
        ("register_model", "model_name", "../evil"),
        ("register_model", "model_name", "has 'quote"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_and_quoted(raw: dict[str, Any], section: str, key: str, value: Any) -> None:
    raw[section][key] = value
    message = told(raw)
    assert f"{section}.{key}: " in message and repr(value) in message


def test_all_faults_are_told_at_once(raw: dict[str, Any]) -> None:
    raw["train_policy"]["steps"] = "many"
    raw["surprise"] = {}
    del raw["write_report"]
    message = told(raw)
    assert message.startswith("params.yaml: 3 wrong key(s)")
    assert all(key in message for key in ("train_policy.steps", "surprise", "write_report"))


def test_conditions_between_keys(raw: dict[str, Any]) -> None:
    raw["fetch_data"]["source"] = "file"
    assert "train_path must name a raw file" in told(raw)
    raw["fetch_data"]["source"] = "sample"
    raw["build_base_model"]["source"] = "folder"
    assert "path must name a checkpoint folder" in told(raw)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("base_url", "http://user:hunter2@127.0.0.1/v1", "credentials do not belong in it"),
        ("base_url", "ftp://user:hunter2@127.0.0.1:x", "credentials do not belong in it"),
        ("base_url", ["hunter2"], "valid string"),
        ("api_key_env", "sk-hunter2", "NAME of an environment variable"),
        ("api_key_env", "KEY\n", "NAME of an environment variable"),
        ("api_key_env", {"hunter2": 1}, "valid string"),
    ],
)
def test_a_secret_in_an_endpoint_is_refused_and_not_repeated(
    raw: dict[str, Any], key: str, value: Any, words: str
) -> None:
    raw["reward"]["judge"]["endpoint"][key] = value
    message = told(raw)
    assert f"reward.judge.endpoint.{key}: " in message and words in message and "hunter2" not in message


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file; run from the project's root"):
        load_params(tmp_path / "params.yaml")


@pytest.mark.parametrize("text", ["a: [1", "a: !!python/object:os.system x", "\ta: 1", "a: \x00"])
def test_broken_yaml_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="not readable as YAML") as caught:
        load_params(path)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(ConfigError):
        load_params(path)


@pytest.mark.parametrize("raw", [None, [], "text", 3])
def test_a_file_that_is_no_mapping(raw: Any) -> None:
    assert "expected a mapping of sections" in told(raw)


def keys(value: Any, prefix: str = "") -> set[str]:
    if not isinstance(value, dict):
        return {prefix}
    return {k for name, inner in value.items() for k in keys(inner, f"{prefix}.{name}")}
