"""What the metadata of a tree gives back, by what the survey knows of its inodes."""

from dataclasses import replace

from tui_fs.cost.space import metadata_bytes
from tui_fs.model.paths import PathStr
from tui_fs.model.space import freed_in_words
from tui_fs.model.survey import Survey, Totals

SURVEY = Survey(PathStr("/t"), Totals(files=999, directories=1))
CHUNK = 64 * 512


def test_where_nothing_is_known_of_inodes_nothing_is_certain() -> None:
    # Given a survey without them / When asked / Then at most what was measured, and never less
    assert metadata_bytes(SURVEY, "ext4", 1_000) == (0, 0)
    assert metadata_bytes(SURVEY, "btrfs", 1_000)[0] == 0
    least, most = metadata_bytes(SURVEY, "xfs", 1_000)
    assert (least, most > 513 * 1_000) == (0, True)


def test_chunks_of_inodes_come_back_for_certain_and_at_most() -> None:
    # Given what is known of chunks
    known = replace(SURVEY, inode_bytes=(15 * CHUNK, 16 * CHUNK))
    # When all is deleted / Then both are told
    assert metadata_bytes(known, "xfs", 1_000) == (15 * CHUNK, 16 * CHUNK)
    # When the target itself is kept / Then its chunk need not come back
    assert metadata_bytes(known, "xfs", 999, kept=1) == (9 * CHUNK, 16 * CHUNK)
    assert metadata_bytes(known, "xfs", 999, kept=9)[0] == 0
    # When only some is selected / Then no chunk is certain, and not more go than are selected
    some = replace(known, matched=Totals(files=1))
    assert metadata_bytes(some, "xfs", 1) == (0, 64 * 2048 + 65_536)
    assert metadata_bytes(some, "xfs", 99) == (0, 16 * CHUNK)


def test_what_inodes_give_back_is_told_where_it_is_much() -> None:
    # Given figures / When told / Then the inodes' part only where somebody would wonder
    mib = 1 << 20
    assert freed_in_words(31 * mib, 31 * mib, 9_000, 29 * mib) == "31.0 MiB (inodes 29.0 MiB)"
    assert freed_in_words(900 * mib, 900 * mib, 9_000, 29 * mib) == "900.0 MiB"
    told = freed_in_words(30 * mib, 31 * mib, 5 * mib, 29 * mib)
    assert told == "30.0 MiB to 36.0 MiB (inodes 29.0 MiB; links outside, or held open; metadata)"
