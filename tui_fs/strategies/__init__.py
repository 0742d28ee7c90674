"""Ways to delete: pure functions from a target to command lines."""
