"""A training run composed against verl's own schema: what params ask for is what verl gets, and nothing unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envace.config import Params, SamplingParams
from envace.errors import ConfigError
from envace.training.overrides import RunPaths, compose, verl_overrides


def with_training(params: Params, **changes: Any) -> Params:
    return params.model_copy(update={"train_policy": params.train_policy.model_copy(update=changes)})


def with_rollout(params: Params, **changes: Any) -> Params:
    return params.model_copy(update={"rollout": params.rollout.model_copy(update=changes)})


@pytest.mark.filterwarnings("ignore:Disabled critic")
def test_the_shipped_parameters_compose_and_pass_verls_own_checks(composed: Any) -> None:
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import validate_config

    validate_config(composed, need_reference_policy(composed), need_critic(composed))
    assert not need_critic(composed) and not need_reference_policy(composed)


def test_every_parameter_reaches_verl(plugins: Any, params: Params, run_paths: RunPaths) -> None:
    asked = with_training(
        params,
        seed=7,
        steps=11,
        tasks_per_step=3,
        rollouts_per_task=5,
        learning_rate=2e-4,
        warmup_steps=2,
        weight_decay=0.05,
        clip_ratio=0.15,
        grad_clip=0.7,
        kl_coefficient=1e-4,
        entropy_coefficient=0.01,
        validate_every=4,
        checkpoint_every=6,
        keep_checkpoints=3,
        micro_batch_rows=9,
    )
    sampling = SamplingParams(temperature=0.9, top_p=0.99)
    asked = with_rollout(asked, act=sampling, rehearse=sampling, max_prompt_tokens=300, max_act_tokens=40)
    config = compose(verl_overrides(asked, run_paths, None))
    actor, rollout, trainer = config.actor_rollout_ref.actor, config.actor_rollout_ref.rollout, config.trainer
    assert (actor.optim.lr, actor.optim.lr_warmup_steps, actor.optim.weight_decay) == (2e-4, 2, 0.05)
    assert (actor.clip_ratio, actor.clip_ratio_low, actor.clip_ratio_high, actor.grad_clip) == (0.15, 0.15, 0.15, 0.7)
    assert (actor.use_kl_loss, actor.kl_loss_coef, actor.kl_loss_type) == (True, 1e-4, "low_var_kl")
    assert (actor.entropy_coeff, actor.loss_agg_mode) == (0.01, "seq-mean-token-mean")
    assert actor.ppo_micro_batch_size_per_gpu == 9
    assert (rollout.n, rollout.temperature, rollout.top_p) == (5, 0.9, 0.99)
    assert (config.data.train_batch_size, config.data.seed) == (3, 7)
    assert (config.data.max_prompt_length, config.data.max_response_length) == (300, 40)
    assert (trainer.total_training_steps, trainer.test_freq, trainer.save_freq) == (11, 4, 6)
    assert trainer.max_actor_ckpt_to_keep is None and trainer.total_epochs >= 11  # envace.training.best removes them
    assert config.algorithm.adv_estimator == "role_wise_grpo" and trainer.v1.trainer_mode == "envace_sync"


def test_without_kl_no_reference_policy_is_loaded(composed: Any) -> None:
    assert composed.actor_rollout_ref.actor.use_kl_loss is False
    assert composed.algorithm.use_kl_in_reward is False


def test_a_fresh_run_validates_first_and_a_resumed_one_does_not_again(
    plugins: Any, params: Params, run_paths: RunPaths
) -> None:
    fresh = compose(verl_overrides(params, run_paths, None)).trainer
    resumed = compose(verl_overrides(params, run_paths, Path("/nowhere/checkpoints/global_step_5"))).trainer
    assert (fresh.resume_mode, fresh.resume_from_path, fresh.val_before_train) == ("disable", None, True)
    assert (resumed.resume_mode, resumed.val_before_train) == ("resume_path", False)
    assert resumed.resume_from_path == "/nowhere/checkpoints/global_step_5"


def test_the_gpu_backend_composes_with_nothing_of_the_cpu_backend(
    plugins: Any, params: Params, run_paths: RunPaths
) -> None:
    config = compose(verl_overrides(with_training(params, backend="cuda"), run_paths, None))
    assert config.trainer.device == "cuda" and config.actor_rollout_ref.rollout.name == "vllm"
    assert "envace_cpu" not in str(config)


@pytest.mark.parametrize("override", ["trainer.no_such_key=1", "actor_rollout_ref.actor.clip_ration=0.2", "nonsense=1"])
def test_a_key_that_verl_does_not_have_is_refused(
    plugins: Any, params: Params, run_paths: RunPaths, override: str
) -> None:
    with pytest.raises(ConfigError, match=r"verl refuses.*" + override.split("=")[0].split(".")[-1]):
        compose([*verl_overrides(params, run_paths, None), override])


def test_each_method_has_its_trainer(plugins: Any, params: Params, run_paths: RunPaths) -> None:
    modes = {
        method: compose(verl_overrides(with_training(params, method=method), run_paths, None)).trainer.v1.trainer_mode
        for method in ("envace", "grpo", "per_role")
    }
    assert modes == {"envace": "envace_sync", "grpo": "envace_sync", "per_role": "envace_per_role"}


def test_the_old_log_probabilities_are_the_rollouts_or_the_trainers(
    plugins: Any, params: Params, run_paths: RunPaths
) -> None:
    rollout, trainer = (
        compose(verl_overrides(with_training(params, old_log_probs=asked), run_paths, None))
        for asked in ("rollout", "trainer")
    )
    assert rollout.algorithm.rollout_correction.bypass_mode is True
    assert trainer.algorithm.rollout_correction is None  # verl fails on it where no rollout of a step has a reward


def test_more_than_one_process_without_gpus_is_refused(params: Params, run_paths: RunPaths) -> None:
    hardware = params.train_policy.hardware.model_copy(update={"gpus_per_node": 2})
    with pytest.raises(ConfigError, match="one training process"):
        verl_overrides(with_training(params, hardware=hardware), run_paths, None)


def test_roles_at_different_temperatures_are_refused(params: Params, run_paths: RunPaths) -> None:
    asked = with_rollout(params, rehearse=SamplingParams(temperature=0.01, top_p=1.0))
    with pytest.raises(ConfigError, match="temperature"):
        verl_overrides(asked, run_paths, None)
    verl_overrides(with_training(asked, method="grpo"), run_paths, None)  # its rehearse role is not trained


def test_greedy_training_is_refused(params: Params, run_paths: RunPaths) -> None:
    greedy = SamplingParams(temperature=0.0, top_p=1.0)
    with pytest.raises(ConfigError, match="temperature is 0"):
        verl_overrides(with_rollout(params, act=greedy, rehearse=greedy), run_paths, None)
