"""Which errors come from a limit, and the sentences for them."""

import errno
import os

import pytest

from tui_fs.linux.limits import cause_of, is_limit, limit_sentence


def os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("error", "is_from_limit"),
    [
        (os_error(errno.ENOMEM), True),
        (os_error(errno.EMFILE), True),
        (os_error(errno.ENOENT), False),
        (MemoryError(), True),
        (RuntimeError("can't start new thread"), True),
        (RuntimeError("cannot schedule new futures after shutdown"), False),
        (ImportError("cannot map", path="/usr/lib/python3/lib.so"), True),
        (ImportError("cannot import name", path="/usr/lib/python3/lib.py"), False),
        (ModuleNotFoundError("No module named 'lib'", path="/usr/lib/python3/lib.so"), False),
        (SystemError("initialization of lib failed without exception set"), True),
        (SystemError("<built-in> returned NULL without exception set"), True),
        (SystemError("<function> returned NULL without setting an exception"), True),
        (SystemError("bad argument to internal function"), False),
        (None, False),
    ],
)
def test_limits_are_distinguished_from_other_errors(
    error: BaseException | None, is_from_limit: bool
) -> None:
    assert is_limit(error) is is_from_limit


def test_an_error_that_was_lost_for_lack_of_memory_names_the_memory() -> None:
    sentence = limit_sentence(SystemError("returned NULL without exception set"))
    assert sentence.startswith("There is not enough memory (ENOMEM).")


def test_an_error_without_a_number_is_its_own_cause() -> None:
    assert cause_of(ValueError("It is odd")) == ("It is odd", "")
