"""Space freed in addition to file blocks, and the format of its range."""

import pytest

from tui_fs.model.space import freed_in_words, metadata_bytes_max

MIB = 1 << 20


@pytest.mark.parametrize(
    ("filesystem", "least", "most"),
    [("ext4", 0, 0), ("tmpfs", 0, 0), ("xfs", 513, 2_048), ("btrfs", 1_230, 4_096)],
)
def test_metadata_is_so_much_for_an_entry_at_most(filesystem: str, least: int, most: int) -> None:
    bound = metadata_bytes_max(filesystem, 100_000)
    assert least * 100_000 <= bound <= most * 100_000


def test_a_range_of_freed_space_has_a_reason() -> None:
    assert freed_in_words(900 * MIB, 900 * MIB, 9_000) == "900.0 MiB"
    assert freed_in_words(30 * MIB, 30 * MIB, 5 * MIB) == (
        "30.0 MiB to 35.0 MiB (metadata is freed in chunks)"
    )
    assert freed_in_words(30 * MIB, 31 * MIB, 5 * MIB) == (
        "30.0 MiB to 36.0 MiB (links outside, or open files; metadata is freed in chunks)"
    )
    assert freed_in_words(30 * MIB - 4_096, 30 * MIB) == (
        "almost 30.0 MiB (links outside, or open files)"
    )
