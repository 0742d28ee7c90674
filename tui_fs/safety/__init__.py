"""The rules that forbid a deletion, and the check that a confirmed directory is unchanged."""
