"""Training: plug-ins for verl, its CPU backend, and the tiny base model."""
