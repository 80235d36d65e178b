"""What several tests share: the shipped parameters, a tiny random policy, and a project whose training has ended."""

from __future__ import annotations

import json
import shutil
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from envace import processes
from envace.config import Params, load_params
from envace.files import write_json
from envace.quiet import be_quiet
from envace.rollout.records import rollout_row, write_rollouts
from envace.types import Observation, Output, Role, Rollout, StepRecord, StopReason, ToolCall, TurnRecord

ROOT = Path(__file__).resolve().parents[1]
be_quiet()
# a slow or busy machine is no fault of the code
settings.register_profile("envace", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("envace")

CHAT_TEMPLATE = (
    "{% for t in tools or [] %}{{ t.function.name }};{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def pytest_configure() -> None:
    """A run in the background of a script inherits an ignored SIGINT, and tests that interrupt would wait for ever."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """Commands called in this process set signal handlers, and an interrupt starts a timer that would end it later."""
    ours = threading.current_thread() is threading.main_thread()
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    yield
    for each, handler in before.items():
        if ours:
            signal.signal(each, handler)
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer) and thread.function is processes._leave:
            thread.cancel()


@pytest.fixture(scope="session")
def project_root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def params() -> Params:
    """The parameters as shipped."""
    return load_params(ROOT / "params.yaml")


@pytest.fixture(scope="session")
def tiny_policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Qwen3 of random weights with a byte-level tokenizer, as a Hugging Face folder (safetensors)."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    special = ["<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    fast: Any = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|im_end|>")
    fast.chat_template = CHAT_TEMPLATE
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(fast),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        tie_word_embeddings=True,
        eos_token_id=fast.eos_token_id,
        bos_token_id=None,
        pad_token_id=fast.pad_token_id,
    )
    folder = tmp_path_factory.mktemp("policy") / "policy"
    Qwen3ForCausalLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def figures(reward: float, success: float, malformed: float, exact: float) -> dict[str, Any]:
    """The evaluation of one policy on one split."""
    counted = {"rollouts": 40, "unscorable": 0, "rehearsals": 90}
    means = {"reward": reward, "reward_se": 0.02, "success": success, "success_se": 0.04}
    fidelity = {"count": 90, "parses": 1 - malformed, "exact": exact, "key_f1": 0.9, "error_agreement": 0.96}
    return {
        "true": {**means, **counted, "malformed_share": None},
        "rehearsed": {**means, **counted, "malformed_share": malformed},
        "fidelity": {**fidelity, "leaf_f1": 0.88, "error_recall": 0.2},
    }


def evaluation(trained_reward: float = 0.83, *, beside: bool = True) -> dict[str, Any]:
    """A decoded evaluation; `beside` adds the policies that exist only for a base built here."""
    policies = {"base": figures(0.69, 0.11, 0.1, 0.78), "trained": figures(trained_reward, 0.47, 0.02, 0.76)}
    if beside:
        policies |= {"clean": figures(0.89, 0.75, 0.01, 0.9), "control": figures(0.693, 0.12, 0.1, 0.78)}
    return {"policies": {name: {"heldout": f, "hard": f} for name, f in policies.items()}}


def results(policies: Iterable[str]) -> dict[str, Any]:
    """Results by benchmark: held-out tasks run by code, a benchmark that nobody ran."""
    found = {"n": 40, "mean": 0.5, "se": 0.02}
    groups = {"all": found, "turns: 1": {**found, "n": 30}, "turns: 2": None}
    known = {"benchmark": "heldout", "environment": "code", "metric": "reward", "digest": "d1" * 32, "groups": groups}
    none = dict.fromkeys(("environment", "metric", "digest", "groups"))
    not_run = {"benchmark": "BFCL v4", "policy": "trained", **none}
    return {"format": 1, "results": [*({**known, "policy": name} for name in policies), not_run]}


def rollout(task: str, index: int, reward: float | None, text: str = "It is sunny.") -> Rollout:
    """One finished rollout of one turn: a call, its rehearsed result, a reply."""
    call = ToolCall(tool_name="get_weather", arguments='{"city":"Łódź"}')
    written = '<tool_call>{"name": "get_weather", "arguments": {"city":"Łódź"}}</tool_call>'
    outputs = [
        Output(Role.ACT, 0, [1] * 20, [2] * 9, [-0.1] * 9, written, call),
        Output(Role.REHEARSE, 0, [1] * 32, [2] * 5, [-0.2] * 5, '{"weather":"sunny"}'),
        Output(Role.ACT, 0, [1] * 40, [2] * 4, [-0.3] * 4, text),
    ]
    steps = [StepRecord("", "", [call], [Observation(call, outputs[1].text, "rehearsed")]), StepRecord("", text)]
    turn = TurnRecord(0, "What is the weather in Łódź?", steps, text, reward or 0.0, reward == 1.0)
    reason = StopReason.COMPLETED if reward is not None else StopReason.ENGINE_FAILURE
    return Rollout(task, index, outputs, [turn], reason, reward, reward == 1.0)


def training_rows() -> list[dict[str, Any]]:
    """Rollouts of three training steps and two validations, one of them not scorable."""
    rows = []
    for step in (1, 2, 3):
        made = [rollout(f"t{i}", k, 0.2 * step + 0.1 * k) for i in range(2) for k in range(2)]
        rows += [rollout_row(r, step=step, phase="train") for r in made]
    rows.append(rollout_row(rollout("t9", 0, None), step=3, phase="train"))
    for step, reward in ((0, 0.5), (3, 1.0)):
        rows.append(rollout_row(rollout("v0", 0, reward), step=step, phase="validation"))
    return rows


def fill_project(folder: Path, policy: Path, trained_reward: float = 0.83, *, beside: bool = True) -> Path:
    """Write all that register_model and write_report read; arguments as of `evaluation`."""
    shutil.copy(ROOT / "params.yaml", folder / "params.yaml")
    if not (folder / "models" / "policy").exists():
        shutil.copytree(policy, folder / "models" / "policy")
    write_json(folder / "data/prepared/manifest.json", {"splits": {"train": 360, "heldout": 120}})
    write_tasks(folder, ["t0", "t1"], ["h0", "h1"])
    decoded = evaluation(trained_reward, beside=beside)
    write_json(folder / "reports/evaluation/metrics.json", decoded)
    write_json(folder / "reports/evaluation/results.json", results(decoded["policies"]))
    write_rollouts(folder / "reports/training/rollouts.parquet", training_rows(), ("step", "phase"))
    curve = [{"step": s, "reward/mean": 0.2 * s, "act/outputs": 12.0, "pass@1": 0.5} for s in (1, 2, 3)]
    curve[1]["kl"] = float("nan")
    lines = "".join(json.dumps(row) + "\n" for row in curve)
    (folder / "reports/training/metrics.jsonl").write_text(lines, encoding="utf-8")
    write_json(folder / "reports/training/summary.json", {"steps": 3})
    return folder


def write_tasks(folder: Path, train: list[str], heldout: list[str]) -> None:
    """A table with the columns by which a benchmark is known: the tasks' ids and their splits."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    splits = ["train"] * len(train) + ["heldout"] * len(heldout)
    pq.write_table(pa.table({"task_id": [*train, *heldout], "split": splits}), folder / "data/prepared/tasks.parquet")


@pytest.fixture
def finished_project(tmp_path: Path, tiny_policy: Path) -> Callable[..., Path]:
    """Makes a project folder with all that register_model and write_report read; arguments as of `evaluation`."""

    def make(trained_reward: float = 0.83, *, beside: bool = True) -> Path:
        return fill_project(tmp_path, tiny_policy, trained_reward, beside=beside)

    return make
