"""Counting a tree and finding its pathologies."""
