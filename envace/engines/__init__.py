"""Inference engines behind one protocol: token ids in, sampled ids and log-probabilities out."""
