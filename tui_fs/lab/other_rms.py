"""Builds of rm besides GNU's, and how each is called."""

from collections.abc import Mapping

from tui_fs.model.strategy import Argv

UUTILS_TOOLS = ("uu-rm", "uu_rm", "coreutils")
"""As Arch and MacPorts, Fedora, and the project itself name it; the last is all tools in one."""


def uutils_rm(tools: Mapping[str, str]) -> Argv:
    """Return how uutils' rm is called, under the first of its names that is installed."""
    installed = [name for name in UUTILS_TOOLS if name in tools]
    name = installed[0] if installed else UUTILS_TOOLS[0]
    return (name, "rm") if name == "coreutils" else (name,)
