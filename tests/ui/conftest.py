"""The snapshots of screens, and the end of their threads."""

import time
from collections.abc import AsyncIterator
from threading import Event

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode


class _TextFile(SingleFileSnapshotExtension):
    """One readable file for each screen."""

    _write_mode = WriteMode.TEXT
    _file_extension = file_extension = "txt"  # syrupy 4 and 5 name it differently


@pytest.fixture
def picture(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Return what a screen's text is compared with."""
    return snapshot.use_extension(_TextFile)


@pytest.fixture(autouse=True)
async def end_of_polling(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Wake the threads that poll, for which the event loop waits at its end."""
    is_over = Event()
    # To wait for 0 s would let no other thread run
    monkeypatch.setattr(time, "sleep", lambda seconds: is_over.wait(max(seconds, 0.001)))
    yield
    is_over.set()
