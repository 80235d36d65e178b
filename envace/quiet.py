"""The one place that keeps every tool quiet and offline: no usage reports, no update checks, no model hub."""

from __future__ import annotations

import os

QUIET_ENVIRONMENT = {
    "DO_NOT_TRACK": "true",
    "DVC_NO_ANALYTICS": "1",
    "GX_ANALYTICS_ENABLED": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_OFFLINE": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TOKENIZERS_PARALLELISM": "false",  # else a warning for every forked helper
    "TRANSFORMERS_OFFLINE": "1",
    "WANDB_MODE": "disabled",
}


def be_quiet() -> None:
    """Set the variables in this process, and so in its children. A value the user has set stays."""
    for name, value in QUIET_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
