"""What the effective user may do with a file, also where a filter does not know faccessat2(2)."""

import os


def may(path: str, mode: int) -> bool:
    """Return whether the effective user has this access (os.R_OK and so on).

    glibc 2.33 and later returns the answer of a seccomp filter to faccessat2 unless it is ENOSYS;
    the plain call answers the same question where the effective user is the real one.
    """
    if os.access(path, mode, effective_ids=True):
        return True
    is_real = os.getuid() == os.geteuid() and os.getgid() == os.getegid()
    return is_real and os.access(path, mode)
