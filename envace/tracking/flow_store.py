"""How a flow and its stages are written: the parent run, the children, and the links to what came before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envace.config import Params
from envace.files import read_json
from envace.tracking.live_curve import LiveCurve
from envace.tracking.names import parameter_texts
from envace.tracking.run_content import log_parameters
from envace.tracking.runs import PARENT, start_run
from envace.tracking.secrets import Scrub
from envace.tracking.stage_content import log_outcome, parameters_of
from envace.tracking.store import experiment_id, open_store

if TYPE_CHECKING:
    from mlflow import MlflowClient

    from envace.tracking.flow_run import StageRun

_TRAINING = "train_policy"
_MODEL_STAGE, _MODEL_IDS = "register_model", Path(".envace/registration.json")
_NAMED = 50  # parameters that differ from the run before, in the tag; all are in the runs themselves
_LONGEST = 4000


@dataclass(slots=True)
class FlowStore:
    """The runs of one flow in MLflow."""

    client: MlflowClient
    experiment: str
    run_id: str
    root: Path
    values: dict[str, Any]
    tags: Mapping[str, str]
    scrub: Scrub
    _curves: dict[str, LiveCurve] = field(default_factory=dict)

    @classmethod
    def open(
        cls, root: Path, params: Params, name: str, tags: Mapping[str, str], began_ms: int, scrub: Scrub
    ) -> FlowStore:
        """Start the flow's own run, with all parameters. Raises TrackingError or what MLflow raises."""
        client = open_store(root)
        experiment = experiment_id(client, params.register_model.experiment, root)
        run_id = start_run(client, experiment, name, {**tags, "kind": "flow"}, began_ms)
        values = params.model_dump(mode="json")
        log_parameters(client, run_id, values)
        return cls(client, experiment, run_id, root, values, tags, scrub)

    def write(self, stage: StageRun) -> None:
        """Bring a stage's run to where the stage is: a training's curve too, also where it fails in the end.

        One that is written as ended stays as it is.
        """
        if stage.is_written:
            return
        if stage.run_id is None:
            stage.run_id = self._begin(stage)
        curve = self._curves.setdefault(stage.name, LiveCurve(self.root, stage.began_ms))
        if stage.name == _TRAINING and stage.status != "FINISHED":
            curve.log_new(self.client, stage.run_id)
        if stage.ended_ms is None:
            return
        self.client.set_tag(
            stage.run_id, "outcome", stage.outcome if stage.status == "FINISHED" else stage.status.lower()
        )
        if stage.error is not None:
            self.client.set_tag(stage.run_id, "error", self.scrub(stage.error)[:_LONGEST])
        try:
            if stage.status == "FINISHED" and stage.outcome != "unchanged":
                log_outcome(self.client, stage.run_id, self.root, stage.name, curve)
                if stage.name == _MODEL_STAGE:
                    self._adopt_model(stage)
        finally:
            self.client.set_terminated(stage.run_id, stage.status, stage.ended_ms)
            stage.is_written = True

    def finish(self, status: str, tags: Mapping[str, str], lock: Path) -> None:
        """End the flow's own run, with dvc.lock as the flow left it."""
        for key, value in tags.items():
            self.client.set_tag(self.run_id, key, value)
        if lock.is_file():
            self.client.log_artifact(self.run_id, str(lock))
        self.client.set_terminated(self.run_id, status)

    def _begin(self, stage: StageRun) -> str:
        values = parameters_of(self.root, stage.name, self.values)
        tags = {**self.tags, "kind": "stage", "stage": stage.name, PARENT: self.run_id}
        tags |= self._before(stage.name, values)
        run_id = start_run(self.client, self.experiment, stage.name, tags, stage.began_ms)
        log_parameters(self.client, run_id, values)
        return run_id

    def _before(self, stage: str, values: Mapping[str, Any]) -> dict[str, str]:
        """The last run of the same stage that did something, and which parameters have changed since."""
        asked = f"tags.kind = 'stage' and tags.stage = '{stage}'"
        runs = self.client.search_runs(
            [self.experiment], asked, order_by=["attributes.start_time DESC"], max_results=20
        )
        earlier = next((run for run in runs if run.data.tags.get("outcome") != "unchanged"), None)
        if earlier is None:
            return {}
        now, then = parameter_texts(values)[0], earlier.data.params
        changed = sorted(key for key in {*now, *then} if now.get(key) != then.get(key))
        listed = ", ".join(changed[:_NAMED])[:_LONGEST]
        return {"previous_run": earlier.info.run_id, "changed_parameters": listed}

    def _adopt_model(self, stage: StageRun) -> None:
        """The run that the stage itself has written becomes a child of the stage's, and the version names the flow."""
        path = self.root / _MODEL_IDS
        if stage.outcome != "ran" or not path.is_file():
            return
        ids = read_json(path)
        run = self.client.get_run(ids["run_id"])
        if run.info.start_time >= stage.began_ms:
            self.client.set_tag(ids["run_id"], PARENT, stage.run_id)
            for key, value in {**self.tags, "flow_run": self.run_id}.items():
                if key in ("prefect_run", "flow_run"):
                    self.client.set_model_version_tag(ids["model_name"], ids["version"], key, value)
