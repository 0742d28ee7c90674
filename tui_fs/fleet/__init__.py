"""The same work on many hosts, over the user's own ssh."""
