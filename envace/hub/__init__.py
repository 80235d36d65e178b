"""Files from Hugging Face repositories: a pinned revision, every file checked, and nothing else of the hub."""
