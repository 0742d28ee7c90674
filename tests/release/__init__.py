"""The files of a release, each in a root of its own."""
