"""Puts a checkpoint behind an OpenAI-compatible address: vLLM where it is installed, else a thin server on the CPU."""
