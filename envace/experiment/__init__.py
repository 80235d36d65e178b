"""Experiments: arms and seeds of a plan run by the pipeline's own stages, compared pair by pair, written down."""
