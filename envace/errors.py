"""Every error that EnvACE raises on purpose: one root, one subclass a boundary, so that callers know whose it is."""


class EnvaceError(Exception):
    """Root of all deliberate errors. The message says what is wrong, where, and what to do about it."""


class ConfigError(EnvaceError):
    """params.yaml or a profile is wrong. Lists every fault found, not only the first."""


class DataError(EnvaceError):
    """A raw file, a table or a record cannot be used."""


class ContractError(DataError):
    """The data as a whole breaks the contract (severity F of the check list): nothing may be trained on it."""


class ToolCallError(EnvaceError):
    """An act output holds a tool-call block that is not a call. Returned as data by the parser, not raised."""


class EngineError(EnvaceError):
    """An inference engine failed or answered something impossible."""


class NotFiniteError(EngineError):
    """An inference engine gave a number that is not finite: its weights or its arithmetic are broken.

    Inference treats it as any failure of an engine; a training ends with it.
    """


class EndpointError(EngineError):
    """A model server could not be asked, or did not answer properly within the time allowed.

    `cause`: timeout, malformed (it answered something else), unreachable (or it refused) or breaker (left alone).
    """

    def __init__(self, message: str, cause: str = "unreachable") -> None:
        super().__init__(message)
        self.cause = cause


class TrainingError(EnvaceError):
    """The trainer could not start, resume or end as asked."""


class CheckpointError(TrainingError):
    """A checkpoint is missing, cut short, or belongs to another configuration."""


class TrackingError(EnvaceError):
    """The experiment store could not be opened, written or read."""


class BenchmarkError(EnvaceError):
    """A benchmark harness could not be installed or run, or gave something that is no result."""


class StageError(EnvaceError):
    """A pipeline stage failed or was refused (for example because another process holds its lock)."""
