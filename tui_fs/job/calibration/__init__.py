"""Calibration: measuring what a deletion costs on a file system, and keeping the results."""
