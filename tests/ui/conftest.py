"""The snapshots of screens."""

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
