"""`envace doctor`: what of this machine, this installation and this project would get in the way of a run."""
