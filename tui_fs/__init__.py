"""tui-fs: delete large directories from the terminal, and see what it really costs."""

__version__ = "0.1.0"
