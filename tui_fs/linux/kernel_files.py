"""Read the small files with which the kernel reports its state (proc(5), sysfs(5))."""


def content_of(path: str, most: int = -1) -> bytes:
    """Return the content of a file, at most `most` bytes; empty if it cannot be read.

    Kernels lack some of these files, and containers hide some.
    """
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except OSError:
        return b""
