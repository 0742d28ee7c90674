"""Maintenance besides deleting: recreate an emptied directory, set a directory aside."""
