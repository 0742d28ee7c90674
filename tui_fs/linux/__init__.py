"""What the kernel tells about mounts, file systems and processes."""
