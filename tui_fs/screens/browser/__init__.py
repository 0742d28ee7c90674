"""The browser: a surveyed tree, directory by directory, with its ranking and findings."""
