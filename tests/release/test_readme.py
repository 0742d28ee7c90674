"""The README starts the program from a checkout, and names of release files are current."""

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.terminal import Terminal
from tests.needs import needs_tool
from tui_fs import __version__

_ROOT = Path(__file__).parents[2]
_BUILT = shutil.ignore_patterns(".git", ".venv", "target", "build", "dist", "*.egg-info", ".*cache")


def start_commands() -> list[str]:
    """Return the commands with which the README starts: one file, pip, uv."""
    start = (_ROOT / "README.md").read_text().partition("\n## Start\n")[2]
    return re.findall(r"^    (.+)$", start.partition("\n## ")[0], re.MULTILINE)[:3]


@contextmanager
def started(command: str, home: Path, directory: Path) -> Iterator[Terminal]:
    """Yield a terminal in which a command runs in a directory, with an empty home."""
    needs_tool("tmux", "tmux")
    home.mkdir()
    # The certificates of a network that has its own; pip has them in its configuration
    certificates = os.environ.get("SSL_CERT_FILE")
    known = f"export SSL_CERT_FILE={shlex.quote(certificates)}; " if certificates else ""
    line = f"{known}cd {directory} && {command}; echo ended with $?; sleep 60"
    opened = Terminal(["bash", "-c", line], home)
    try:
        yield opened
    finally:
        opened.close()


def copy_checkout(directory: Path) -> Path:
    """Copy this checkout to a new directory; return the directory."""
    shutil.copytree(_ROOT, directory, symlinks=True, ignore=_BUILT)
    return directory


def expect_file_systems(terminal: Terminal) -> None:
    """Wait until a terminal shows the list of file systems; fail if the command ends before."""
    ends = ("what is full", "ended with")
    waiting_s = 1800.0  # it downloads and builds
    terminal.wait_until(lambda text: any(end in text for end in ends), "an end", waiting_s)
    assert "what is full" in terminal.text()


@pytest.mark.slow
def test_the_command_for_a_checkout_opens_the_list_of_file_systems(tmp_path: Path) -> None:
    checkout = copy_checkout(tmp_path / "checkout")
    # Optimizing the engine takes longest, and how fast it is does not matter here
    quickly = "export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1"
    with started(f"{quickly}; {start_commands()[1]}", tmp_path / "home", checkout) as terminal:
        expect_file_systems(terminal)


def test_the_documents_name_the_files_of_this_version() -> None:
    texts = [(_ROOT / name).read_text() for name in ("README.md", "docs/howto/release.md")]
    versions = re.findall(r"tui[-_]fs[-_](\d[\d.]*\d)", " ".join(texts))
    assert set(versions) == {__version__}
