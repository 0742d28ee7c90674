"""Helpers for the tests of ``recreate`` and ``aside``."""

from pathlib import Path

import pytest

from tests.conftest import Cli, Finished, Json


@pytest.fixture
def spool(tmpfs: Path) -> Path:
    """Return an empty directory."""
    spool = tmpfs / "spool"
    spool.mkdir(mode=0o750)
    return spool


@pytest.fixture
def full(spool: Path) -> Path:
    """Return a directory of three files."""
    for name in ("a", "b", "c"):
        (spool / name).touch()
    return spool


def put_aside(cli: Cli, path: Path, *options: str) -> Json:
    """Set a directory aside and return the program's JSON."""
    return cli.run("aside", path, "--yes", "--json", *options).expect(0).object()


def refused(finished: Finished, code: int = 3) -> str:
    """Return the sentence of what was refused, with its advice."""
    finished.expect(code)
    assert finished.stdout == b""
    sentence = finished.stderr.strip().splitlines()[-1]
    assert sentence.startswith("tui-fs: ")
    assert len(sentence.split()) > 3
    return sentence
