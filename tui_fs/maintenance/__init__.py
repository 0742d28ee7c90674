"""Maintenance without deletion: recreate an emptied directory, set a directory aside."""
