"""EnvACE: trains LLM tool-use agents by world rehearsal and role-wise GRPO."""

__version__ = "0.1.0"
