"""What Python 3.11 added, for Python 3.10."""

import sys

if sys.version_info >= (3, 11):
    from enum import StrEnum
    from typing import assert_never
else:
    from enum import Enum
    from typing import NoReturn

    class StrEnum(str, Enum):
        """An enum of strings that are equal to their values and formatted as these."""

        __str__ = str.__str__

    def assert_never(value: NoReturn) -> NoReturn:
        """Mark code that a type checker must find unreachable."""
        raise AssertionError(f"not reachable with {value!r}")


__all__ = ["StrEnum", "assert_never"]
