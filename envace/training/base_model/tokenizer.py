"""The tiny policy's tokenizer: byte-level BPE learned on the sample, and a chat template with compact tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from envace.chat.layout import render_calls
from envace.data.sample import Demonstration

SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>"]

# A word with its leading space, a run of punctuation, or white space: keeps JSON's quotes and braces in few tokens.
_SPLIT = r" ?[\p{L}\p{N}_]+|[^\p{L}\p{N}_\s]+(?: (?![\p{L}\p{N}_]))?[^\p{L}\p{N}_\s]*|\s+"

# Messages as <|im_start|>role\ncontent<|im_end|>\n; a tool as one line name(arg, arg:type), a string's type left out.
CHAT_TEMPLATE = """
{%- set lines = namespace(text='') -%}
{%- if messages and messages[0].role == 'system' -%}{%- set lines.text = messages[0].content -%}{%- endif -%}
{%- for tool in tools or [] -%}
  {%- set function = tool.function if tool.function is defined else tool -%}
  {%- set arguments = namespace(text='') -%}
  {%- for name, schema in (function.parameters.properties or {}).items() -%}
    {%- set kind = '' if schema.type == 'string' else ':' ~ schema.type -%}
    {%- set arguments.text = arguments.text ~ (', ' if arguments.text else '') ~ name ~ kind -%}
  {%- endfor -%}
  {%- set lines.text = lines.text ~ ('\\n' if lines.text else '') ~ function.name ~ '(' ~ arguments.text ~ ')' -%}
{%- endfor -%}
{%- if lines.text -%}{{ '<|im_start|>system\\n' ~ lines.text ~ '<|im_end|>\\n' }}{%- endif -%}
{%- for message in messages if message.role != 'system' -%}
  {{- '<|im_start|>' ~ message.role ~ '\\n' ~ (message.content or '') -}}
  {%- for call in message.tool_calls or [] -%}
    {%- set arguments = call.function.arguments -%}
    {{- '<tool_call>{"name": "' ~ call.function.name ~ '", "arguments": ' -}}
    {{- (arguments if arguments is string else arguments | tojson) ~ '}</tool_call>' -}}
  {%- endfor -%}
  {{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""


def build_tokenizer(demonstrations: Sequence[Demonstration], vocabulary: int, max_positions: int) -> Any:
    """Learn the merges on the texts of `demonstrations`. The same demonstrations give the same tokenizer."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    bpe.train_from_iterator(_texts(demonstrations), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=[t for t in SPECIAL_TOKENS if t not in ("<|im_end|>", "<|endoftext|>")],
        chat_template=CHAT_TEMPLATE.strip(),
        model_max_length=max_positions,
        clean_up_tokenization_spaces=False,
    )


def _texts(demonstrations: Sequence[Demonstration]) -> Iterator[str]:
    yield from (f"{role}\n" for role in ("system", "user", "assistant", "tool"))
    for demonstration in demonstrations:
        for tool in demonstration.tools:
            properties = tool.openai()["function"]["parameters"]["properties"]
            kinds = ((n, "" if p["type"] == "string" else f":{p['type']}") for n, p in properties.items())
            yield f"{tool.name}({', '.join(n + k for n, k in kinds)})\n"
        for turn in demonstration.act:
            yield turn.user_message
            yield turn.reply
            for calls, results in turn.steps:
                yield render_calls(list(calls))
                yield from results
