"""From the options of `envace benchmark run` to the specs of its runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from envace.benchmarks.harness import Benchmark
from envace.benchmarks.protocol import (
    REFERENCE_AGENTS,
    Agent,
    AgentKind,
    Harness,
    Limits,
    ModelEndpoint,
    Sampling,
    Spec,
)
from envace.errors import ConfigError
from envace.files import read_json

DEFAULT_TOKENS = 4096
"""Of an answer."""


@dataclass(frozen=True, slots=True)
class EndpointRequest:
    """A model's address as given on the command line."""

    base_url: str | None
    model: str | None
    key_env: str | None
    temperature: float
    top_p: float
    max_tokens: int
    concurrency: int
    timeout_s: float = 120.0

    def endpoint(self, role: str) -> ModelEndpoint | None:
        """The typed endpoint, None where no address was given. Whoever names a host on the command line trusts it."""
        if not self.base_url:
            return None
        if not self.model:
            raise ConfigError(f"the {role} endpoint needs the name of its model as well")
        try:
            return ModelEndpoint(
                base_url=self.base_url,
                model=self.model,
                api_key_env=self.key_env,
                allowed_hosts=[urlsplit(self.base_url).hostname or ""],
                timeout_s=self.timeout_s,
                retries=2,
                deadline_s=3 * self.timeout_s,
                concurrency=self.concurrency,
                breaker_failures=10,
                breaker_pause_s=5.0,
                sampling=Sampling(temperature=self.temperature, top_p=self.top_p, max_tokens=self.max_tokens),
            )
        except ValidationError as error:  # its text would quote an address with credentials in it
            told = "; ".join(f"{fault['loc'][-1]}: {fault['msg']}" for fault in error.errors())
            raise ConfigError(f"the {role} endpoint: {told}") from None
        except ValueError:
            raise ConfigError(f"the {role} endpoint: its address cannot be read; write http://host:port/v1") from None


def specs(
    benchmark: Benchmark,
    agent: Agent,
    policy: EndpointRequest,
    user: EndpointRequest,
    *,
    judge: EndpointRequest | None = None,
    harness: Harness | None = None,
    categories: Sequence[str] = (),
    ids: Sequence[str] = (),
    runs: int = 1,
    first_run: int = 0,
    trials: int = 1,
    seed: int = 0,
    limits: Limits | None = None,
    options: Sequence[str] = (),
    checkpoint_sha256: str | None = None,
    model_version: str | None = None,
) -> list[Spec]:
    """One spec a run. Raises ConfigError where the options do not fit together."""
    given = {
        "--trials": trials > 1,
        "--option": bool(options),
        "--user-url": bool(user.base_url),
        "--judge-url": bool(judge and judge.base_url),
    }
    if ignored := [(name, why) for name, why in benchmark.ignores.items() if given[name]]:
        raise ConfigError(f"{ignored[0][0]} is of no use to {benchmark.title}: {ignored[0][1]}")
    if model_version and agent.kind in REFERENCE_AGENTS:
        raise ConfigError(f"--version: what the agent {agent.kind} does says nothing about a version; leave it out")
    asked = policy.endpoint("policy")
    if agent.kind in REFERENCE_AGENTS:
        asked = None
    elif asked is None:
        raise ConfigError(f"agent {agent.kind} needs --base-url and --model of the policy (or --checkpoint)")
    if unknown := sorted(set(categories) - set(benchmark.sizes)):
        raise ConfigError(f"--category {unknown[0]}: {benchmark.title} has {', '.join(benchmark.sizes)}")
    if categories and ids:
        raise ConfigError("give --category or --id, not both")
    return [
        Spec(
            benchmark=benchmark.name,
            harness=harness or Harness(name=benchmark.package, kind=benchmark.kind, version=benchmark.version),
            agent=agent,
            policy=asked,
            user=user.endpoint("user"),
            judge=judge.endpoint("judge") if judge else None,
            categories=list(categories) or None,
            ids=list(ids) or None,
            run=first_run + number * trials,
            trials=trials,
            seed=seed,
            limits=limits or Limits(),
            options=dict(_option(text) for text in options),
            checkpoint_sha256=checkpoint_sha256 if asked else None,
            model_version=model_version,
        )
        for number in range(runs)
    ]


def acting(kind: AgentKind, mode: str | None, n: int | None, rehearses: str | None) -> Agent:
    """Who acts. Raises ConfigError where what is said about rehearsal is not what its agent needs."""
    given = {"--rehearsal-mode": mode, "--rehearsal-n": n, "--rehearsal-model": rehearses}
    if kind != "rehearsal":
        if said := [name for name, value in given.items() if value is not None]:
            raise ConfigError(f"{said[0]} goes with --agent rehearsal alone")
        return Agent(kind=kind)
    if mode not in ("parallel", "sequential") or n is None:
        raise ConfigError(
            "--agent rehearsal needs --rehearsal-mode parallel or sequential, and --rehearsal-n: how its server at "
            "--base-url rehearses is part of the result"
        )
    return Agent(kind=kind, mode=mode, n=n, model=rehearses)  # type: ignore[arg-type]


def answer_tokens(asked: int | None, checkpoint: Path | None, say: Callable[[str], None]) -> int:
    """The longest answer in tokens. Not asked for, it is at most a quarter of what fits a checkpoint's context.

    Raises ConfigError where the asked one leaves a question no room, or config.json does not say what fits.
    """
    if checkpoint is None:
        return asked or DEFAULT_TOKENS
    try:
        context = int(read_json(checkpoint / "config.json")["max_position_embeddings"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ConfigError(
            f"--checkpoint {checkpoint}: its config.json with max_position_embeddings cannot be read; give a Hugging "
            "Face model folder, for example models/policy"
        ) from None
    if asked is None:
        most = min(DEFAULT_TOKENS, max(1, context // 4))
        if most < DEFAULT_TOKENS:
            say(f"--max-tokens {most}: a quarter of the {context} tokens that fit {checkpoint}")
        return most
    if asked >= context:
        raise ConfigError(
            f"--max-tokens {asked} leaves no room for a question: {checkpoint} takes {context} tokens in all; give "
            f"fewer, or leave the option out ({min(DEFAULT_TOKENS, max(1, context // 4))} then)"
        )
    return asked


def checkout_harness(benchmark: Benchmark, folder: Path) -> Harness:
    """The sources in `folder` instead of the package. Raises ConfigError where this benchmark knows none."""
    if benchmark.checkout is None:
        raise ConfigError(f"{benchmark.title} is run from its package alone; leave --checkout out")
    version, commit = benchmark.checkout
    path = str(folder.absolute())
    return Harness(
        name=f"{benchmark.name} checkout {commit[:7]}", kind="checkout", version=version, commit=commit, checkout=path
    )


def _option(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigError(f"--option {text}: write it as key=value, the value as JSON or plain text")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
