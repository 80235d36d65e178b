"""S2: a hostile file in every slot that reads one. It is refused with a message, and nothing in it runs."""

from __future__ import annotations

import ast
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from envace.config import Params, load_params
from envace.data.drift import read_profile
from envace.data.task_reader import read_tasks
from envace.doctor.project import cache_finding
from envace.engines.load import load_policy
from envace.errors import EnvaceError
from envace.report.inputs import read_inputs
from envace.report.recorded import recorded_rows
from envace.stage_outputs import read_record
from envace.training.base_model.provide import provide_base
from pipeline_steps import fetch_data, validate_data

_UNSAFE = {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
_UNSAFE_CALLS = {
    "torch.load",
    "np.load",
    "numpy.load",
    "yaml.load",
    "yaml.unsafe_load",
    "yaml.full_load",
    "pd.read_pickle",
}


class Hostile:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.write_text, (self.mark, "ran")


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """Is there once hostile content has run."""
    return tmp_path / "ran"


@pytest.fixture(params=["pickle", "torch", "numpy", "yaml"])
def hostile(request: pytest.FixtureRequest, tmp_path: Path, mark: Path) -> bytes:
    """The bytes of a file that runs code in a reader that trusts it."""
    path = tmp_path / "hostile"
    if request.param == "pickle":
        path.write_bytes(pickle.dumps(Hostile(mark)))
    elif request.param == "torch":
        torch.save(Hostile(mark), path)
    elif request.param == "numpy":
        with path.open("wb") as file:
            np.savez(file, rows=np.array([Hostile(mark)], dtype=object), allow_pickle=True)
    else:
        path.write_text(f"!!python/object/apply:os.system ['touch {mark}']\n", encoding="utf-8")
    return path.read_bytes()


def test_the_hostile_files_are_hostile(tmp_path: Path, mark: Path) -> None:
    import yaml

    torch.save(Hostile(mark), tmp_path / "x")
    for trust in (
        lambda: pickle.loads(pickle.dumps(Hostile(mark))),
        lambda: torch.load(tmp_path / "x", weights_only=False),
        lambda: yaml.unsafe_load(f"!!python/object/apply:os.system ['touch {mark}']\n"),
    ):
        trust()
        assert mark.is_file()
        mark.unlink()


def read_raw(params: Params, path: Path) -> None:
    """What fetch_data and validate_data do with a user's own file."""
    section = params.fetch_data.model_copy(update={"source": "file", "train_path": str(path), "licence": "MIT"})
    given = params.model_copy(update={"fetch_data": section})
    fetch_data.run(given)
    validate_data.run(given)


SLOTS: dict[str, Callable[[Params, Path], Any]] = {
    "params.yaml": lambda params, path: load_params(path),
    "raw.json": read_raw,
    "raw.jsonl": read_raw,
    "raw.parquet": read_raw,
    "raw.pkl": read_raw,
    "accepted_profile.json": lambda params, path: read_profile(path),
    "tasks.parquet": lambda params, path: read_tasks(path),
    "rollouts.parquet": lambda params, path: recorded_rows(path),
    "metrics.json": lambda params, path: read_record("evaluate_policy", path),
}


@pytest.mark.parametrize("slot", SLOTS)
def test_a_file_that_a_stage_reads(
    slot: str, hostile: bytes, params: Params, tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    (tmp_path / slot).write_bytes(hostile)
    with pytest.raises(EnvaceError):
        SLOTS[slot](params, tmp_path / slot)
    assert not mark.exists()


@pytest.mark.parametrize(
    "slot",
    [
        *("reports/evaluation/metrics.json", "reports/evaluation/results.json", "reports/validation/validation.json"),
        *("reports/training/rollouts.parquet", "data/prepared/manifest.json"),
    ],
)
def test_a_file_that_the_report_reads(
    slot: str, hostile: bytes, finished_project: Callable[..., Path], mark: Path
) -> None:
    project = finished_project()
    (project / slot).parent.mkdir(parents=True, exist_ok=True)
    (project / slot).write_bytes(hostile)
    with pytest.raises(EnvaceError):
        read_inputs(project)
    assert not mark.exists()


def test_a_lock_file_that_the_doctor_reads(hostile: bytes, tmp_path: Path, mark: Path) -> None:
    (tmp_path / ".dvc").mkdir()
    (tmp_path / "dvc.lock").write_bytes(hostile)
    assert cache_finding(tmp_path).level == "problem"
    assert not mark.exists()


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json", "tokenizer_config.json"])
def test_a_file_of_a_policy(name: str, hostile: bytes, tiny_policy: Path, tmp_path: Path, mark: Path) -> None:
    folder = shutil.copytree(tiny_policy, tmp_path / "policy")
    (folder / name).write_bytes(hostile)
    with pytest.raises(Exception) as caught:
        load_policy(folder, max_slots=1, max_length=64)
    assert not mark.exists() and not isinstance(caught.value, AssertionError)


@pytest.fixture
def evil_checkpoint(tiny_policy: Path, tmp_path: Path, mark: Path) -> Path:
    """A sound checkpoint with code of its own, pickled weights, and a template that reaches for the shell."""
    folder = shutil.copytree(tiny_policy, tmp_path / "evil")
    code = f"from pathlib import Path\nPath({str(mark)!r}).write_text('ran')\n"
    for name in ("modeling_evil.py", "configuration_evil.py", "tokenization_evil.py"):
        (folder / name).write_text(code, encoding="utf-8")
    for name, maps in (
        ("config.json", {"AutoConfig": "configuration_evil.C", "AutoModelForCausalLM": "modeling_evil.M"}),
        ("tokenizer_config.json", {"AutoTokenizer": ["tokenization_evil.T", None]}),
    ):
        known = json.loads((folder / name).read_text(encoding="utf-8"))
        (folder / name).write_text(json.dumps({**known, "auto_map": maps}), encoding="utf-8")
    torch.save(Hostile(mark), folder / "pytorch_model.bin")
    return folder


def from_folder(params: Params, folder: Path, base: Path) -> None:
    section = params.build_base_model.model_copy(update={"source": "folder", "path": str(folder)})
    provide_base(section, params.fetch_data.sample, base, base.with_name("references"))


def test_code_and_pickles_beside_a_checkpoint_are_neither_run_nor_copied(
    params: Params, evil_checkpoint: Path, tmp_path: Path, mark: Path
) -> None:
    from_folder(params, evil_checkpoint, tmp_path / "base")
    load_policy(tmp_path / "base", max_slots=1, max_length=64)
    names = {path.suffix for path in (tmp_path / "base").iterdir()}
    assert not mark.exists() and not names & {".py", ".bin", ".pt", ".pkl"}


def test_pickled_weights_alone_are_refused(params: Params, evil_checkpoint: Path, tmp_path: Path, mark: Path) -> None:
    (evil_checkpoint / "model.safetensors").unlink()
    with pytest.raises(EnvaceError, match="pickled weights are not loaded"):
        from_folder(params, evil_checkpoint, tmp_path / "base")
    with pytest.raises(EnvaceError):
        load_policy(evil_checkpoint, max_slots=1, max_length=64)
    assert not mark.exists()


def test_a_chat_template_cannot_reach_the_shell(
    params: Params, evil_checkpoint: Path, tmp_path: Path, mark: Path
) -> None:
    template = evil_checkpoint / "chat_template.jinja"
    reach = f"{{{{ cycler.__init__.__globals__.os.system('touch {mark}') }}}}"
    template.write_text(reach + template.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(Exception, match=r"(?i)unsafe|template"):
        from_folder(params, evil_checkpoint, tmp_path / "base")
    assert not mark.exists()


def test_the_code_has_no_reader_that_runs_what_it_reads(project_root: Path) -> None:
    found = []
    for folder in ("envace", "flows", "pipeline_steps"):
        for path in sorted((project_root / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                unsafe = _UNSAFE & {name.split(".")[0] for name in names}
                if isinstance(node, ast.Call) and ast.unparse(node.func) in _UNSAFE_CALLS:
                    loader = next((ast.unparse(k.value) for k in node.keywords if k.arg == "Loader"), "")
                    is_safe = "SafeLoader" in loader or f"class {loader}(yaml.SafeLoader)" in text
                    unsafe = set() if is_safe else {ast.unparse(node.func)}
                if isinstance(node, ast.keyword) and node.arg == "trust_remote_code":
                    unsafe = set() if ast.unparse(node.value) == "False" else {"trust_remote_code"}
                found += [f"{path.relative_to(project_root)}: {name}" for name in unsafe]
    assert not found
