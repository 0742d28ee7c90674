"""Attacks on a running job: a hostile user swaps names while root deletes."""
