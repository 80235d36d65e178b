"""Scores a policy on held-out tasks: in the true world, in its own rehearsed one, and on how true its rehearsals are."""
