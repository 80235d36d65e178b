"""The base policy: a small Qwen3 model and tokenizer built and warm-started here, or a checkpoint from a folder."""
