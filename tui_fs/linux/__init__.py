"""Interfaces to the kernel: mounts, file systems, processes."""
