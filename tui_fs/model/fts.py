"""How rm and find read directories: gnulib's fts (lib/fts.c)."""

FTS_ENTRIES_AT_ONCE = 100_000
"""fts reads at most this many names at a time (FTS_MAX_READDIR_ENTRIES)."""

FTS_SORTED_ABOVE = 10_000
"""What it has read of larger directories it sorts by inode
(FTS_INODE_SORT_DIR_ENTRIES_THRESHOLD)."""

NOT_SORTED = frozenset({"tmpfs", "nfs", "nfs4"})
"""But not on these file systems (dirent_inode_sort_may_be_useful)."""
