"""Measures the unit costs of deletion on a file system, and stores the results."""
