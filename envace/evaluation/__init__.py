"""Scores a policy on held-out tasks: in the true world, in its rehearsed one, and by how true its rehearsals are."""
