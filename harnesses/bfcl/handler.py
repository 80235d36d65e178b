"""Our model handler, registered with the harness by its own extension point: asks an agent, executes in the sandbox."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any

from bfcl_eval.constants import model_config
from bfcl_eval.constants.enums import ModelStyle
from bfcl_eval.constants.eval_config import MULTI_TURN_FUNC_DOC_PATH
from bfcl_eval.constants.executable_backend_config import MULTI_TURN_FUNC_DOC_FILE_MAPPING
from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils
from bfcl_eval.model_handler.api_inference.openai_completion import OpenAICompletionsHandler
from bfcl_eval.model_handler.base_handler import BaseHandler
from bfcl_eval.utils import contain_multi_turn_interaction, load_file

from envace.benchmarks.protocol import Limits
from harnesses.bfcl.agents import Agent
from harnesses.bfcl.calls import CallRules
from harnesses.bfcl.replies import Reply
from harnesses.bfcl.sandbox import Bounds, Channel, ChildFailedError, Zygote
from harnesses.bfcl.talk import Bound, StoppedError, Talk

NAME = "envace"
"""Of the model in the harness: without an underscore, which the harness would take for a slash."""
NOTE = "envace"
"""Key of what we keep in a line of the harness's result files."""
ERROR = "Error during inference: "
"""What the harness itself begins a result with that is no answer."""
_CPU_STEPS = 10

Ask = Callable[[dict[str, Any]], dict[str, Any]]


def call_rules() -> CallRules:
    """Every tool that the harness executes may be called, and no name that its `eval` could find besides."""
    files = MULTI_TURN_FUNC_DOC_FILE_MAPPING.values()
    tools = {tool["name"] for file in files for tool in load_file(MULTI_TURN_FUNC_DOC_PATH / file)}
    scope = multi_turn_utils.execute_multi_turn_func_call.__code__
    return CallRules.of(tools, {*vars(multi_turn_utils), *scope.co_varnames, *scope.co_cellvars, *scope.co_freevars})


class EnvaceHandler(OpenAICompletionsHandler):
    """Made by the harness, so what it needs for a run is in `conduct`, set once in the run's process."""

    conduct: Conduct

    def __init__(self, model_name: str, temperature: float, registry_name: str, is_fc_model: bool, **_: Any) -> None:
        BaseHandler.__init__(self, model_name, temperature, registry_name, is_fc_model)
        self.model_style = ModelStyle.OPENAI_COMPLETIONS  # without the client that OpenAICompletionsHandler makes

    def inference(self, test_entry: dict, include_input_log: bool, exclude_state_log: bool) -> tuple[Any, dict]:
        """As the base class does it, in the sandbox where calls are executed. Never raises."""
        return self.conduct.inference(self, test_entry)

    def infer_here(self, entry: dict, ask: Ask) -> tuple[Any, dict]:
        """The harness's own inference in this process, asking by `ask`."""
        self.conduct.here.ask = ask
        return super().inference(entry, False, True)

    def decode_execute(self, result: Any, has_tool_call_tag: bool) -> list[str]:
        """Calls as source, by the rules. Raises where there is none or one must not run, which ends the turn."""
        if result == "":
            return []
        if not isinstance(result, list):
            raise ValueError("no call")
        rules = self.conduct.rules
        return [rules.source(name, arguments) for call in result for name, arguments in call.items()]

    def _pre_query_processing_FC(self, inference_data: dict, test_entry: dict) -> dict:
        return {**super()._pre_query_processing_FC(inference_data, test_entry), "turn": 0, "step": 0}

    def _add_next_turn_user_message_FC(self, inference_data: dict, user_message: list[dict]) -> dict:
        inference_data |= {"turn": inference_data["turn"] + 1, "step": 0}
        return super()._add_next_turn_user_message_FC(inference_data, user_message)

    def _query_FC(self, inference_data: dict) -> tuple[Reply, float]:
        question = {key: inference_data[key] for key in ("turn", "step", "tools")}
        reply = self.conduct.here.ask({**question, "messages": inference_data["message"]})
        inference_data["step"] += 1
        return Reply.from_json(reply), 0.0

    def _parse_query_response_FC(self, api_response: Reply) -> dict:
        return {
            "model_responses": [{call.name: call.arguments} for call in api_response.calls] or api_response.text,
            "model_responses_message_for_chat_history": api_response.message,
            "tool_call_ids": [call.id for call in api_response.calls],
            "input_token": api_response.prompt_tokens,
            "output_token": api_response.completion_tokens,
        }


class Conduct:
    """How the tasks of one run are inferred: by whom, within which limits, in which sandboxes."""

    agent: Agent
    """Set when the sandboxes have been forked, so that no key is in their memory."""

    def __init__(self, limits: Limits, rules: CallRules, on_done: Callable[[str], None]) -> None:
        self.limits, self.rules = limits, rules
        self.bound = Bound(limits.infra_failures)
        self.here = threading.local()
        self.zygotes: queue.Queue[Zygote] = queue.Queue()
        self._on_done = on_done
        seconds = int(limits.step_s * _CPU_STEPS)
        self.bounds = Bounds(silent_s=limits.step_s, cpu_s=max(1, seconds), memory_mb=limits.memory_mb)

    def inference(self, handler: EnvaceHandler, entry: dict) -> tuple[Any, dict]:
        """Result and what is kept with it; a failure is a result too, in the harness's own words for one."""
        executes = contain_multi_turn_interaction(entry["id"])
        talk = Talk(entry["id"], self.agent, self.bound, self.limits, self.rules if executes else None)
        kept: dict[str, Any] = {}
        try:
            if executes:
                result, kept = self._in_sandbox(entry, talk)
            else:
                result, kept = handler.infer_here(entry, talk.answer)
        except StoppedError as error:
            result = f"{ERROR}{error}"
        except ChildFailedError as error:
            talk.fail("model_failure", f"execution {error}")
            result = f"{ERROR}execution {error}"
        except Exception as error:  # the harness choked on the reply, which it would record in the same way
            talk.fail("model_failure", f"the harness could not take the reply: {type(error).__name__}: {error}")
            result = f"{ERROR}{error}"
        self._on_done(entry["id"])
        # no latencies: the harness makes statistics of them, which fail for a single task
        counted = {key: kept[key] for key in ("input_token_count", "output_token_count") if key in kept}
        return result, {**counted, NOTE: talk.note()}

    def _in_sandbox(self, entry: dict, talk: Talk) -> tuple[Any, dict]:
        zygote = self.zygotes.get()
        try:
            return tuple(zygote.run({"infer": entry}, self.bounds, talk.answer))  # type: ignore[return-value]
        finally:
            self.zygotes.put(zygote)


def infer_in_child(entry: dict, channel: Channel) -> tuple[Any, dict]:
    """In the sandbox: the harness's inference, whose questions go to the driver."""
    handler = EnvaceHandler(NAME, 0.0, NAME, True)
    result, kept = handler.infer_here(entry, channel.ask)
    return result, {key: kept[key] for key in ("input_token_count", "output_token_count")}


def register() -> None:
    """Make the handler known to the harness."""
    model_config.MODEL_CONFIG_MAPPING[NAME] = model_config.ModelConfig(
        model_name=NAME,
        display_name=NAME,
        url="",
        org="",
        license="",
        model_handler=EnvaceHandler,
        is_fc_model=True,
        underscore_to_dot=True,
    )


@contextlib.contextmanager
def conducting(conduct: Conduct):  # type: ignore[no-untyped-def]
    """The handler's conduct for the length of the block."""
    EnvaceHandler.conduct = conduct
    try:
        yield conduct
    finally:
        del EnvaceHandler.conduct
