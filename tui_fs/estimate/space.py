"""Space that may become free besides the blocks that the entries occupy."""

_BYTES_PER_ENTRY = {"xfs": 1_024, "btrfs": 2_048, "zfs": 2_048, "bcachefs": 2_048}
"""The file system frees metadata by chunks and tree blocks, once nothing in them is used. Measured:
513 bytes an entry on xfs (an inode), 750 to 1,230 on btrfs, none on ext4 and tmpfs. It is nothing
where other inodes are in the same chunks, and more where one file of each chunk had been left."""
_SHARED_CHUNKS_BYTES = 64 * 1024
"""For parts of a chunk, or of the trees that list chunks, that are freed with others."""


def metadata_bytes_max(filesystem: str, entries: int) -> int:
    """Return the most bytes that the metadata of deleted entries may free; none are certain.

    Args:
        filesystem: its type, as the mount table names it.
        entries: how many are deleted.
    """
    each = _BYTES_PER_ENTRY.get(filesystem, 0)
    return entries * each + _SHARED_CHUNKS_BYTES if each else 0
