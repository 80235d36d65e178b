"""The tests, a package so that those of one subject can share helpers."""
