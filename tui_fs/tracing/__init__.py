"""Live counters of system calls; one file per source, and the ladder that picks one."""
