"""What comes back besides the blocks that the entries occupy."""

_BYTES_PER_ENTRY = {"xfs": 1024, "btrfs": 2048, "zfs": 2048, "bcachefs": 2048}
"""At most: xfs gave back 513 bytes an entry (an inode) and btrfs 750 to 1,230 (50,000 empty and
20,000 small files), ext4 and tmpfs not one."""
_XFS_CHUNK_BYTES = 64 * 1024
"""xfs makes and frees inodes by chunks of 64, so that neighbours of the tree may join in."""


def metadata_bytes_max(kind: str, entries: int) -> int:
    """Return how much the metadata of so many entries may give back on a type of file system."""
    each = _BYTES_PER_ENTRY.get(kind, 0)
    return entries * each + (_XFS_CHUNK_BYTES if each else 0)
