"""tui-fs: delete large directories from the terminal, and see what it really costs."""

import sys

__version__ = "0.1.0"

# msgspec takes get_type_hints from typing_extensions if that is installed, else from typing, which
# has all of it since Python 3.11. Loading typing_extensions is a tenth of the start of a command.
if sys.version_info >= (3, 11) and "typing_extensions" not in sys.modules:
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    import msgspec  # noqa: F401

    del sys.modules["typing_extensions"]
