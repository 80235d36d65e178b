"""The data: the bundled sample, the readers, the contract with its checks, and the canonical tables."""
