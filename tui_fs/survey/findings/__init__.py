"""Detect problems of a tree: a registry with one entry for each kind of finding."""
