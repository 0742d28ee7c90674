"""Runs a plan in a detached process, and reads its journal and report."""
