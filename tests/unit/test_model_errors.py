"""What an errno means for a deletion, in words a person can act on."""

import errno

import pytest

from tui_fs.model.errors import meaning


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EPERM, "active swap file"),
        (errno.EBUSY, "mounted on it"),
        (errno.ETXTBSY, "running program"),
        (errno.EROFS, "kernel log"),
        (errno.EUCLEAN, "fsck"),
        (errno.ENOKEY, "unlock it"),
        (errno.ENOTCONN, "mount it again"),
        (errno.EIO, "kernel log"),
        (errno.EDQUOT, "have the quota raised"),
        (errno.ESTALE, "server"),
        (errno.EXDEV, "subvolume"),
        (errno.ETIMEDOUT, "connection"),
    ],
)
def test_the_meaning_is_in_plain_words(number: int, words: str) -> None:
    assert words in meaning(number)
    assert errno.errorcode[number] not in meaning(number)


def test_an_active_swap_file_is_not_what_the_kernel_calls_busy() -> None:
    # unlink(2) of one fails with EPERM (IS_SWAPFILE in fs/namei.c)
    assert "swap" not in meaning(errno.EBUSY)


def test_any_other_error_has_its_text_and_name() -> None:
    assert meaning(errno.EMLINK) == "the kernel reports: Too many links (EMLINK)"
    assert "9999" in meaning(9999)
