"""Cures besides deleting: give an emptied directory a small index, put a directory aside."""
