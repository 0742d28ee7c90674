"""What comes back besides the blocks that the entries occupy."""

from tui_fs.model.survey import Survey

_BYTES_PER_ENTRY = {"xfs": 1024, "btrfs": 2048, "zfs": 2048, "bcachefs": 2048}
"""Where nothing better is known: xfs gave back 513 bytes an entry (an inode) and btrfs 750 to 1,230
(50,000 empty and 20,000 small files), ext4 and tmpfs not one."""
_LARGEST_CHUNK_BYTES = 64 * 2048
"""xfs makes and frees inodes by chunks of 64, of 2,048 bytes where they are largest."""
_NEIGHBOURS_BYTES = 64 * 1024
"""Where a part of a chunk, or of the trees that list chunks, goes with others."""


def metadata_bytes(
    survey: Survey, kind: str = "", entries: int | None = None, kept: int = 0
) -> tuple[int, int]:
    """Return how much the metadata of a tree gives back, certainly and at most.

    Args:
        kind: type of the file system; empty for no more than the survey itself knows.
        entries: how many are deleted, if not all that the survey has counted.
        kept: directories that are kept, each in a chunk of inodes.
    """
    if entries is None:
        entries = survey.totals.entries
    if survey.inode_bytes is None:
        each = _BYTES_PER_ENTRY.get(kind, 0)
        return 0, entries * each + (_NEIGHBOURS_BYTES if each else 0)
    least, most = survey.inode_bytes
    each = _LARGEST_CHUNK_BYTES + _NEIGHBOURS_BYTES
    if survey.matched is not None:
        return 0, min(most, entries * each)
    return max(0, least - kept * each), most
