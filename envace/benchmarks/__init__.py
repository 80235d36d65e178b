"""Public benchmarks by their official harnesses, each in a venv and a process of its own; files go in and out."""
