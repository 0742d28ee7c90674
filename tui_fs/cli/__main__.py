"""The command line as a module, for a process that starts another command of tui-fs."""

from tui_fs.cli import entry_point

if __name__ == "__main__":
    entry_point()
