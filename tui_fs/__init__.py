"""tui-fs: delete large directories from the terminal, and see what it really costs."""

import gc
import sys

__version__ = "0.1.0"

# Loading the modules of a command would trigger 40 collections, a twelfth of its start.
gc.set_threshold(50_000)

# msgspec takes get_type_hints from typing_extensions if that is installed, else from typing, which
# has all of it since Python 3.11. Loading typing_extensions is a tenth of the start of a command.
if sys.version_info >= (3, 11) and "typing_extensions" not in sys.modules:
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    import msgspec  # noqa: F401

    del sys.modules["typing_extensions"]
