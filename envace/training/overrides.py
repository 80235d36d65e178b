"""From params.yaml to verl's configuration: a list of overrides, composed against verl's own schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envace.config import Params, RolloutParams
from envace.errors import ConfigError

FP32 = "{param_dtype:fp32,reduce_dtype:fp32,buffer_dtype:fp32}"


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The files of one training run. All absolute."""

    model: Path
    train_data: Path
    validation_data: Path
    settings: Path
    checkpoints: Path
    ray_temp: Path


def verl_overrides(params: Params, paths: RunPaths, resume_from: Path | None) -> list[str]:
    """Hydra overrides for `ppo_trainer`. Raises ConfigError with all that params ask for and verl cannot honour."""
    if faults := list(params_faults(params)):
        raise ConfigError("; ".join(faults))
    return [
        *_common(params, paths, resume_from),
        *(_cpu(params, paths) if params.train_policy.backend == "cpu" else _cuda(params)),
    ]


def compose(overrides: list[str]) -> Any:
    """verl's configuration with the overrides. Raises ConfigError for a key that verl does not have."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_module
    from hydra.errors import HydraException

    try:
        with initialize_config_module("verl.trainer.config", version_base=None):
            return hydra_compose("ppo_trainer", overrides=overrides)
    except HydraException as error:
        raise ConfigError(f"verl refuses the configuration: {' '.join(str(error).split())[:400]}") from error


def params_faults(params: Params) -> Iterator[str]:
    """What params ask for and verl cannot honour, though each section by itself is right."""
    train, rollout = params.train_policy, params.rollout
    act, rehearse = rollout.act, rollout.rehearse
    if train.method != "grpo" and act.temperature != rehearse.temperature:
        yield (
            "rollout.act.temperature and rollout.rehearse.temperature differ: in training both roles are updated at "
            "one temperature, so set them equal"
        )
    if act.temperature == 0:
        yield "rollout.act.temperature is 0: a group of equal rollouts teaches nothing; set it above 0"
    hardware = train.hardware
    if train.backend == "cpu" and hardware.nodes * hardware.gpus_per_node > 1:
        yield ("train_policy.backend is cpu, which is one training process: set hardware.nodes and gpus_per_node to 1")
    longest, length = longest_sequence(rollout), hardware.max_model_len
    for name, given in (("max_model_len", length), ("tokens_per_gpu", hardware.tokens_per_gpu)):
        if given is not None and given < longest:
            yield (
                f"train_policy.hardware.{name} is {given}, but a prompt and its output may have {longest} tokens "
                "(rollout.max_prompt_tokens and the longer of the two output limits): raise it or lower those"
            )


def longest_sequence(rollout: RolloutParams) -> int:
    """Tokens of the longest training row: a prompt with an output of either role."""
    return rollout.max_prompt_tokens + max(rollout.max_act_tokens, rollout.max_rehearse_tokens)


def _common(params: Params, paths: RunPaths, resume_from: Path | None) -> list[str]:
    train, rollout = params.train_policy, params.rollout
    response = max(rollout.max_act_tokens, rollout.max_rehearse_tokens)
    actor, generate = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
    return [
        f"trainer.v1.trainer_mode={'envace_per_role' if train.method == 'per_role' else 'envace_sync'}",
        f"trainer.nnodes={train.hardware.nodes}",
        f"trainer.n_gpus_per_node={train.hardware.gpus_per_node}",
        "trainer.logger=[]",
        f"trainer.val_before_train={resume_from is None}",  # else it is recorded already, or not due at that step
        f"trainer.total_training_steps={train.steps}",
        f"trainer.total_epochs={train.steps}",  # an epoch has at least one step, so the steps are what ends the run
        f"trainer.test_freq={train.validate_every}",
        f"trainer.save_freq={train.checkpoint_every}",
        "trainer.max_actor_ckpt_to_keep=null",  # verl would remove the best one too; envace.training.best keeps it
        f"trainer.default_local_dir={paths.checkpoints}",
        f"trainer.resume_mode={'resume_path' if resume_from else 'disable'}",
        f"trainer.resume_from_path={resume_from or 'null'}",
        "algorithm.adv_estimator=role_wise_grpo",
        "algorithm.use_kl_in_reward=False",
        "algorithm.norm_adv_by_std_in_grpo=False",
        *_old_log_probs(train.old_log_probs),
        f"data.train_files={paths.train_data}",
        f"data.val_files={paths.validation_data}",
        f"data.train_batch_size={train.tasks_per_step}",
        f"data.max_prompt_length={rollout.max_prompt_tokens}",
        f"data.max_response_length={response}",
        "data.dataloader_num_workers=0",
        "data.shuffle=True",
        "data.validation_shuffle=False",
        f"data.seed={train.seed}",
        f"actor_rollout_ref.model.path={paths.model}",
        f"{actor}.optim.lr={train.learning_rate}",
        f"{actor}.optim.lr_warmup_steps={train.warmup_steps}",
        f"{actor}.optim.weight_decay={train.weight_decay}",
        f"{actor}.optim.lr_scheduler_type=constant",
        f"{actor}.grad_clip={train.grad_clip}",
        # verl's lower and upper bounds have defaults of their own, which win over clip_ratio
        *(f"{actor}.{bound}={train.clip_ratio}" for bound in ("clip_ratio", "clip_ratio_low", "clip_ratio_high")),
        f"{actor}.ppo_mini_batch_size={train.tasks_per_step}",
        f"{actor}.loss_agg_mode=seq-mean-token-mean",
        f"{actor}.use_kl_loss={train.kl_coefficient > 0}",
        f"{actor}.kl_loss_coef={train.kl_coefficient}",
        f"{actor}.kl_loss_type=low_var_kl",
        f"{actor}.entropy_coeff={train.entropy_coefficient}",
        f"{actor}.data_loader_seed={train.seed}",
        f"{actor}.checkpoint.save_contents=[model,optimizer,extra,hf_model]",
        f"{actor}.fsdp_config.seed={train.seed}",
        f"{generate}.n={train.rollouts_per_task}",
        f"{generate}.temperature={rollout.act.temperature}",
        f"{generate}.top_p={rollout.act.top_p}",
        f"{generate}.tensor_model_parallel_size={train.hardware.tensor_parallel}",
        f"{generate}.agent.num_workers={train.hardware.rollout_workers}",
        f"{generate}.calculate_log_probs=True",
        f"{generate}.agent.default_agent_loop=envace_act_rehearse",
        f"{generate}.agent.agent_loop_config_path={paths.settings}",
        f"{generate}.val_kwargs.n=1",
    ]


def _old_log_probs(by: str) -> list[str]:
    """rollout: the rollout's own (verl's bypass mode). trainer: computed once more before the update.

    Then verl would also compare the two and correct for the difference. Nothing here uses that, and it fails on a step
    in which no rollout has a reward (ValueError on a mask that is all zero): without the section it is not computed.
    """
    if by == "rollout":
        return ["algorithm.rollout_correction.bypass_mode=True"]
    return ["algorithm.rollout_correction=null"]


def _cpu(params: Params, paths: RunPaths) -> list[str]:
    rows = params.train_policy.micro_batch_rows
    actor, ref, generate = ("actor_rollout_ref." + part for part in ("actor", "ref", "rollout"))
    return [
        "trainer.device=cpu",
        "+ray_kwargs.ray_init.num_gpus=1",  # a logical one: Ray places the trainer's worker by it
        "ray_kwargs.ray_init.num_cpus=16",
        "+ray_kwargs.ray_init.include_dashboard=False",
        "+ray_kwargs.ray_init.log_to_driver=False",
        f"+ray_kwargs.ray_init._temp_dir={paths.ray_temp}",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
        "actor_rollout_ref.model.use_remove_padding=False",
        f"actor_rollout_ref.model.enable_gradient_checkpointing={params.train_policy.hardware.gradient_checkpointing}",
        "+actor_rollout_ref.model.override_config.attn_implementation=sdpa",
        *(f"{part}.strategy=fsdp2" for part in (actor, ref)),
        *(f"{part}.fsdp_config.use_torch_compile=False" for part in (actor, ref)),
        *(f"+{part}.fsdp_config.mixed_precision={FP32}" for part in (actor, ref)),
        f"{actor}.use_torch_compile=False",
        f"{actor}.use_dynamic_bsz=False",
        f"{actor}.ppo_micro_batch_size_per_gpu={rows}",
        f"{ref}.log_prob_micro_batch_size_per_gpu={rows}",
        f"{generate}.log_prob_micro_batch_size_per_gpu={rows}",
        f"{generate}.name=envace_cpu",
        f"{generate}.full_determinism=True",  # one hash seed for all of verl's processes
        "reward.num_workers=1",
        "reward.reward_model.rollout.name=envace_cpu",
    ]


def _cuda(params: Params) -> list[str]:
    hardware, longest = params.train_policy.hardware, longest_sequence(params.rollout)
    actor, ref, generate = ("actor_rollout_ref." + part for part in ("actor", "ref", "rollout"))
    return [
        "trainer.device=cuda",
        f"actor_rollout_ref.model.enable_gradient_checkpointing={hardware.gradient_checkpointing}",
        "actor_rollout_ref.model.use_remove_padding=True",
        *(f"{part}.strategy=fsdp2" for part in (actor, ref)),
        *(f"{actor}.fsdp_config.{part}_offload={hardware.offload}" for part in ("param", "optimizer")),
        f"{ref}.fsdp_config.param_offload={hardware.offload}",
        # rows are packed up to so many tokens; a row is never cut, so the longest one must fit
        f"{actor}.use_dynamic_bsz=True",
        f"{actor}.ppo_max_token_len_per_gpu={hardware.tokens_per_gpu or longest}",
        f"{ref}.log_prob_use_dynamic_bsz=True",
        f"{generate}.log_prob_use_dynamic_bsz=True",
        f"{generate}.name=vllm",
        f"{generate}.gpu_memory_utilization={hardware.gpu_memory_utilization}",
        f"{generate}.max_model_len={hardware.max_model_len or longest}",
        f"{generate}.max_num_seqs={hardware.max_sequences}",
        f"{generate}.enable_prefix_caching=True",  # both roles continue one prefix
        "reward.reward_model.rollout.name=vllm",  # never started; verl wants a name
    ]
