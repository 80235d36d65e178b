"""Experiment tracking and the model registry: the only place that knows MLflow."""
