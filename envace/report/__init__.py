"""The run report: one page and its pictures, computed from the files that the stages left."""
