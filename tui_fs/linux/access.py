"""What the effective user may do with a file, also where a filter refuses faccessat2(2)."""

import os


def may(path: str, mode: int, dir_fd: int | None = None) -> bool:
    """Return whether the effective user has this access (os.R_OK and so on).

    glibc 2.33 and later returns the answer of a seccomp filter to faccessat2 unless it is ENOSYS.
    access(2) answers the same question where the effective user is the real one; it takes no
    directory, so it reaches one by /proc.

    Args:
        dir_fd: an open directory to which `path` is relative.
    """
    if os.access(path, mode, dir_fd=dir_fd, effective_ids=True):
        return True
    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():
        return False
    return os.access(path if dir_fd is None else f"/proc/self/fd/{dir_fd}/{path}", mode)
