"""What is unusual about a tree: a registry with one entry for each kind of finding."""
