"""The registered model: the checkpoint beside it answers a tool-use chat. Self-contained: MLflow copies this file."""

from __future__ import annotations

import warnings
from typing import Any

from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext

# MLflow asks for type hints while the class is made, and would make a schema of them that is too narrow for chats with
# tools; it sets its own filter for that warning, so that only recording keeps it back.
with warnings.catch_warnings(record=True):

    class ChatPolicy(PythonModel):
        """Answers each conversation with the assistant's next message, tool calls as in the chat template."""

        def load_context(self, context: PythonModelContext) -> None:
            """Load tokenizer and weights from the artifact `checkpoint` (safetensors only, nothing fetched)."""
            from transformers import AutoModelForCausalLM, AutoTokenizer

            folder = context.artifacts["checkpoint"]
            self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model: Any = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, use_safetensors=True)
            self._model = model.eval()
            self._max_new_tokens = int((context.model_config or {}).get("max_new_tokens", 256))

        def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]
            """One text for each row of `model_input`: a list or data frame of {"messages": [...], "tools": [...]}.

            Messages and tools are in the OpenAI form. Greedy; `tools` may be absent.
            """
            rows = model_input.to_dict("records") if hasattr(model_input, "to_dict") else list(model_input)
            return [self._answer(row["messages"], row.get("tools")) for row in rows]

        def _answer(self, messages: Any, tools: Any) -> str:
            # a data frame gives arrays, and NaN for an absent cell
            offered = list(tools) if hasattr(tools, "__len__") else []
            prompt = self._tokenizer.apply_chat_template(
                list(messages), tools=offered or None, add_generation_prompt=True, tokenize=False
            )
            inputs = self._tokenizer(prompt, add_special_tokens=False, return_tensors="pt")
            end = self._tokenizer.eos_token_id
            output = self._model.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                max_new_tokens=self._max_new_tokens,
                do_sample=False,
                eos_token_id=end,
                pad_token_id=end,
            )
            sampled = output[0, inputs["input_ids"].shape[1] :].tolist()
            # tool-call tags are special tokens in some tokenizers, so only the end token is left out
            return self._tokenizer.decode([t for t in sampled if t != end], skip_special_tokens=False)


set_model(ChatPolicy())
