"""Trees with each pathology, on the file systems that have it, and whether it is found."""
