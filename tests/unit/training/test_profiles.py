"""The profiles for GPUs: whole, refused until they are filled in, the paper's recipe, and nothing that verl refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envace.config import Params, load_params, parse_params
from envace.errors import ConfigError
from envace.profiles import SHIPPED, fill_in, profile_names, profile_path, unfilled
from envace.strict_yaml import parse_plain_yaml
from envace.training.overrides import RunPaths, compose, verl_overrides

GPU_PROFILES = ["qwen3-1.7b", "qwen3-4b", "qwen3-8b"]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILLED = {
    "fetch_data.hub.repository": "namezz/some-set",
    "fetch_data.hub.revision": COMMIT,
    "fetch_data.hub.train_files": "*.json",
    "fetch_data.hub.licence": "CC-BY-4.0",
    "build_base_model.hub.revision": COMMIT,
    "reward.judge.endpoint.base_url": "http://judge.example:8000/v1",
    "reward.judge.endpoint.allowed_hosts": ["judge.example"],
}


def raw_profile(name: str) -> dict[str, Any]:
    return parse_plain_yaml(profile_path(name).read_text(encoding="utf-8"))


def filled(name: str) -> Params:
    return parse_params(fill_in(raw_profile(name), FILLED), name)


@pytest.fixture(params=GPU_PROFILES)
def profile(request: pytest.FixtureRequest) -> Params:
    """A profile with its open values filled in."""
    return filled(request.param)


@pytest.fixture
def config(plugins: Any, profile: Params, run_paths: RunPaths) -> Any:
    """verl's configuration for it."""
    return compose(verl_overrides(profile, run_paths, None))


def test_the_profiles_are_these(project_root: Path) -> None:
    assert profile_names() == sorted([*GPU_PROFILES, SHIPPED])
    assert profile_path(SHIPPED) == project_root / "params.yaml"
    assert load_params(profile_path(SHIPPED)).profile == SHIPPED


def test_an_unknown_profile_is_answered_with_all_names() -> None:
    with pytest.raises(ConfigError, match=r"'qwen3-8' is unknown.*qwen3-1.7b, qwen3-4b, qwen3-8b, tiny-cpu"):
        profile_path("qwen3-8")
    with pytest.raises(ConfigError, match="unknown"):
        profile_path("../params")


@pytest.mark.parametrize("name", GPU_PROFILES)
def test_a_profile_is_refused_until_it_is_filled_in_and_says_what_is_missing(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_params(profile_path(name))
    told = str(caught.value)
    for key in FILLED:
        assert f"  - {key}" in told
    assert "40 hex digits" in told and f"{len(unfilled(raw_profile(name)))} value(s) to fill in" in told
    open_keys = {key.removesuffix(".0") for key in unfilled(raw_profile(name))}
    assert open_keys == set(FILLED)


def test_filling_in_refuses_a_key_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"fetch_data\.hub\.revison"):
        fill_in(raw_profile("qwen3-8b"), {"fetch_data.hub.revison": COMMIT})


@pytest.mark.parametrize("name", GPU_PROFILES)
def test_a_profile_differs_from_the_others_in_model_and_memory_alone(name: str) -> None:
    one, other = filled(name).model_dump(), filled("qwen3-8b").model_dump()
    assert one.pop("profile") == name and other.pop("profile")
    for raw in (one, other):
        raw["build_base_model"]["hub"].pop("repository")
        for section, key in (("register_model", "model_name"), ("write_report", "title")):
            raw[section].pop(key)
        for key in ("tensor_parallel", "gpu_memory_utilization", "offload"):
            raw["train_policy"]["hardware"].pop(key)
    assert one == other


def test_the_recipe_is_the_papers(profile: Params) -> None:
    train, rollout = profile.train_policy, profile.rollout
    assert (train.steps, train.tasks_per_step, train.rollouts_per_task) == (470, 16, 4)
    assert (train.learning_rate, train.warmup_steps) == (1e-6, 0)
    assert (train.kl_coefficient, train.entropy_coefficient) == (1e-4, 0.0)
    assert (rollout.max_prompt_tokens, rollout.max_act_tokens, rollout.max_rehearse_tokens) == (12000, 8000, 8000)
    assert rollout.max_outputs == 30 and rollout.grounding == "none"
    assert profile.reward.kind == "checklist" and profile.reward.judge.kind == "llm"
    assert profile.reward.judge.endpoint.model == "Qwen/Qwen3-30B-A3B" and profile.reward.judge.temperature == 0.01
    assert train.validation_act == profile.evaluate_policy.act and train.validation_act.temperature == 0.6
    assert profile.evaluate_policy.repeats == 4
    assert (rollout.keep_reasoning, rollout.role_prompts) == ("current_turn", "instructions")
    assert profile.advantage.weighting == "output"
    released = (train.clip_ratio, train.grad_clip, train.weight_decay, train.validate_every, train.checkpoint_every)
    assert released == (0.2, 1.0, 0.01, 10, 50) and not profile.advantage.normalize_std
    assert rollout.act == rollout.rehearse and (rollout.act.temperature, rollout.act.top_p) == (1.0, 1.0)


def test_the_recipe_reaches_verl(config: Any, profile: Params) -> None:
    actor, rollout, trainer = config.actor_rollout_ref.actor, config.actor_rollout_ref.rollout, config.trainer
    assert (trainer.nnodes, trainer.n_gpus_per_node, trainer.device) == (2, 8, "cuda")
    assert (trainer.total_training_steps, trainer.test_freq, trainer.save_freq) == (470, 10, 50)
    assert trainer.v1.trainer_mode == "envace_sync" and config.algorithm.adv_estimator == "role_wise_grpo"
    assert (config.data.train_batch_size, rollout.n) == (16, 4)
    assert (config.data.max_prompt_length, config.data.max_response_length) == (12000, 8000)
    assert (actor.optim.lr, actor.optim.lr_scheduler_type, actor.optim.lr_warmup_steps) == (1e-6, "constant", 0)
    assert (actor.optim.weight_decay, actor.grad_clip, actor.clip_ratio_high, actor.ppo_epochs) == (0.01, 1.0, 0.2, 1)
    assert (actor.use_kl_loss, actor.kl_loss_coef, actor.kl_loss_type) == (True, 1e-4, "low_var_kl")
    assert actor.entropy_coeff == 0.0 and actor.loss_agg_mode == "seq-mean-token-mean"
    assert actor.ppo_mini_batch_size == config.data.train_batch_size  # one update a step, as the trainer makes sure of
    assert not config.algorithm.use_kl_in_reward and config.algorithm.rollout_correction is None
    hardware = profile.train_policy.hardware
    assert (rollout.name, rollout.tensor_model_parallel_size) == ("vllm", hardware.tensor_parallel)
    assert rollout.enable_prefix_caching and rollout.max_model_len == 20000 and rollout.calculate_log_probs
    assert rollout.gpu_memory_utilization == hardware.gpu_memory_utilization
    assert config.actor_rollout_ref.model.enable_gradient_checkpointing
    assert actor.fsdp_config.param_offload == actor.fsdp_config.optimizer_offload == hardware.offload
    assert actor.use_dynamic_bsz and actor.ppo_max_token_len_per_gpu >= 20000
    assert actor.strategy == "fsdp2" and "envace_cpu" not in str(config)


@pytest.mark.filterwarnings("ignore:Disabled critic")
def test_a_profile_passes_verls_own_checks_and_types(config: Any) -> None:
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    assert need_reference_policy(config) and not need_critic(config)
    validate_config(config, True, False)
    for part in (config.actor_rollout_ref.actor, config.actor_rollout_ref.rollout):
        omega_conf_to_dataclass(part)
    omega_conf_to_dataclass(config.algorithm)


@pytest.mark.parametrize("override", ["trainer.nodes=2", "actor_rollout_ref.rollout.tensor_parallel=2"])
def test_a_key_that_verl_does_not_have_is_refused(
    plugins: Any, profile: Params, run_paths: RunPaths, override: str
) -> None:
    with pytest.raises(ConfigError, match="verl refuses"):
        compose([*verl_overrides(profile, run_paths, None), override])


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("train_policy.hardware.max_model_len", 19999, r"max_model_len is 19999.*20000 tokens"),
        ("train_policy.hardware.tokens_per_gpu", 100, r"tokens_per_gpu is 100.*20000 tokens"),
    ],
)
def test_lengths_that_do_not_fit_the_machine_are_refused(run_paths: RunPaths, key: str, value: int, told: str) -> None:
    params = parse_params(fill_in(raw_profile("qwen3-4b"), {**FILLED, key: value}), "profile")
    with pytest.raises(ConfigError, match=told):
        verl_overrides(params, run_paths, None)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("train_policy.method", "grpo", "simulator.endpoint.base_url"),
        ("train_policy.method", "per_role", "runs on backend 'cpu' alone"),
        ("train_policy.hardware.tensor_parallel", 3, "tensor_parallel must divide"),
    ],
)
def test_what_cannot_run_is_refused_with_the_reason(key: str, value: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_params(fill_in(raw_profile("qwen3-4b"), {**FILLED, key: value}), "profile")
