"""How tui-fs starts one of its own Python modules as a process."""

import sys

_RUN_MODULE = (
    "import sys; del sys.path[0], sys.argv[0]; "
    "import runpy; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)
"""``-P -m`` for Python 3.10, which has no ``-P``. What is imported before the first entry of the
path has gone is built in."""


def module_command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module with the interpreter of this process.

    The working directory is not on its import path, because other users may write there. Unlike
    ``-I``, PYTHONPATH and packages that a user has installed for themselves remain on it, since
    tui-fs itself may be installed there.
    """
    start = ("-P", "-m") if sys.version_info >= (3, 11) else ("-c", _RUN_MODULE)
    return [sys.executable, *start, module, *arguments]
