"""What passes between the project and a harness's driver: typed models of the files of one run's folder.

    spec.json        written by the project: what to run, on which policy, how
    results.jsonl    written by the driver: one `Row` a task and run, also for tasks that failed or were not run
    driver.json      written by the driver: what it found and used (`DriverReport`)
    metrics.json     written by the project from the rows: official and strict, side by side (`Metrics`)
    provenance.json  written by the project: spec, driver report, code version, digest (`Provenance`)

**official** is what the harness prints: the mean score over the rows it counts. **strict** counts every failure as 0
over all tasks that were to be run. A group that was not run is null in both, never 0. All values are percent.

The driver is started as `python DRIVER FOLDER` in the harness's venv, with the project's root on its path, so that it
may import this module (which needs only pydantic and PyYAML). Its lines on stdout are the run's log; those that begin
with `progress ` are `progress DONE TOTAL TEXT`. It ends with 0, or with `ABORTED` if too much of the infrastructure
failed; started again on the same folder it goes on with the tasks that have no finished row yet.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from envace.params_basis import Count, EndpointParams, Positive

FORMAT = 1
SPEC, RESULTS, DRIVER_REPORT = "spec.json", "results.jsonl", "driver.json"
METRICS, PROVENANCE, LOG = "metrics.json", "provenance.json", "run.log"
ABORTED = 3
"""Exit code of a driver that stopped since infrastructure failures passed the bound."""
PROGRESS = "progress "

Status = Literal["scored", "model_failure", "infra_failure", "not_run"]
AgentKind = Literal["plain", "rehearsal", "oracle", "do-nothing"]
REFERENCE_AGENTS: tuple[AgentKind, ...] = ("oracle", "do-nothing")
"""Agents that need no policy: the ceiling and the floor that bracket every report."""


class Record(BaseModel):
    """A part of these files: unknown keys are refused, and so are NaN and infinities."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Harness(Record):
    """The official code that scores. A checkout is named by its commit and where it lies on this machine."""

    name: str
    kind: Literal["pypi", "checkout"]
    version: str
    """Of the PyPI package, or the tag of the checkout."""
    commit: str | None = None
    checkout: str | None = None


class Sampling(Record):
    """How the policy is asked."""

    temperature: Annotated[float, Field(ge=0)]
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    max_tokens: Count


class ModelEndpoint(EndpointParams):
    """A model at an OpenAI-compatible address, with how patiently and how it is asked; the key only by its name."""

    sampling: Sampling


class Agent(Record):
    """Who acts. Rehearsal: `mode` and `n` of test-time scaling, whose server stands at the policy's address, and the
    `model` that rehearses, if it is said.
    """

    kind: AgentKind
    mode: Literal["parallel", "sequential"] | None = None
    n: Count | None = None
    model: str | None = None
    rehearsal: EndpointParams | None = None


class Limits(Record):
    """Bounds. `infra_failures`: a run with more of them stops. `step_s`: how long one executed step may take, in
    seconds; `memory_mb`: what code that a policy steers may allocate; `call_bytes`: the longest arguments of a call.
    """

    infra_failures: Annotated[int, Field(ge=0)] = 20
    step_s: Positive = 20.0
    memory_mb: Count = 1024
    call_bytes: Count = 65536


class Spec(Record):
    """spec.json: one run. `categories` or `ids` choose a subset; neither means all that the harness can run here.

    `trials`: how often each task is run; rows are numbered `run` … `run + trials - 1`.
    `options`: settings of one harness alone, documented by it and part of the digest.
    `checkpoint_sha256`, `model_version`: which policy it is, by the content of its folder (`sha256_tree`) and by its
    NAME/VERSION in the registry, where they are known.
    """

    format: Literal[1] = FORMAT
    benchmark: str
    harness: Harness
    agent: Agent
    policy: ModelEndpoint | None = None
    user: ModelEndpoint | None = None
    judge: ModelEndpoint | None = None
    categories: list[str] | None = None
    ids: list[str] | None = None
    run: Annotated[int, Field(ge=0)] = 0
    trials: Count = 1
    seed: int = 0
    limits: Limits = Limits()
    options: dict[str, Any] = {}
    checkpoint_sha256: str | None = None
    model_version: str | None = None

    @model_validator(mode="after")
    def _policy_is_there(self) -> Spec:
        if self.policy is None and self.agent.kind not in REFERENCE_AGENTS:
            raise ValueError(f"agent {self.agent.kind} needs a policy")
        return self


class Tokens(Record):
    """What the policy read and wrote for one task."""

    prompt: int
    completion: int


class Row(Record):
    """One task of one run.

    `score`: the harness's own mark, 0 … 1, null where it gave none. `official_counted`: whether the harness counts the
    task. A model or infrastructure failure may still have an official score (BFCL takes an unreadable answer for an
    abstention); strictly it is 0. `reason` says what happened. `trajectory`: messages, or whatever the harness keeps.
    """

    run: int
    task_id: str
    category: str
    score: Annotated[float, Field(ge=0, le=1)] | None
    status: Status
    official_counted: bool
    tokens: Tokens | None = None
    reason: str | None = None
    trajectory: Any = None

    @property
    def strict(self) -> float:
        """The score, or 0 unless the task was properly scored."""
        return self.score if self.status == "scored" and self.score is not None else 0.0

    @model_validator(mode="after")
    def _fits(self) -> Row:
        if self.status == "scored" and self.score is None:
            raise ValueError("a scored task needs a score")
        if self.official_counted and self.score is None:
            raise ValueError("a task that the harness counts needs a score")
        if self.status == "not_run" and (self.official_counted or self.score is not None):
            raise ValueError("a task that was not run has no score")
        return self


class DriverReport(Record):
    """driver.json. `official`: the harness's own printed figure by category, in percent, to be checked against the
    rows. `notes`: what a reader should know (a sandbox without network isolation, ignored settings).
    """

    versions: dict[str, str]
    data_sha256: dict[str, str]
    sandbox: dict[str, Any] = {}
    official: dict[str, float] = {}
    models: dict[str, str | None] = {}
    """The models that took part besides the policy, by role (user, judge), as the harness names them."""
    notes: list[str] = []
    aborted: str | None = None


class Counts(Record):
    """How the tasks of one category ended. `expected`: how many the full benchmark has."""

    expected: int
    scored: int = 0
    model_failure: int = 0
    infra_failure: int = 0
    not_run: int = 0


class Metrics(Record):
    """metrics.json: percent by category and by column of the published table; null where it was not run.

    `subset`: not all tasks of a category that was run, so nothing here may stand in a published table's cell.
    """

    format: Literal[1] = FORMAT
    benchmark: str
    agent: AgentKind
    run: int
    trials: int
    official: dict[str, float | None]
    strict: dict[str, float | None]
    counts: dict[str, Counts]
    not_run: dict[str, str]
    """Why a category was not run."""
    subset: bool
    aborted: str | None = None


class Provenance(Record):
    """provenance.json: everything needed to know what was run. `digest`: of the benchmark and how it is run, without
    the policy; figures of different digests cannot be compared.
    """

    format: Literal[1] = FORMAT
    spec: Spec
    driver: DriverReport
    digest: str
    code: dict[str, str]
    preflight: dict[str, Any] | None
    subset: bool
    policy_name: str | None = None
    model_version: str | None = None
