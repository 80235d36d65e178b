"""The maths of the method on plain tensors: advantages. No engine, no trainer."""
