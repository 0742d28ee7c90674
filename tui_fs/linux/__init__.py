"""What the kernel offers: mounts, file systems, processes."""
