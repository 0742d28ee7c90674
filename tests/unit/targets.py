"""A target that no rule refuses, an empty environment, and refusals."""

from pathlib import Path

import pytest

from tui_fs.model.errors import Refused
from tui_fs.model.paths import PathStr
from tui_fs.safety.rules import (
    Environment,
    check,
)

# No mount of the kernel has numbers like these, so pins do not name a mount of this table.
ROOT_ID = 10**10
ROOT_MOUNT = b"%d 1 8:1 / / rw - ext4 /dev/sda1 rw\n" % ROOT_ID


@pytest.fixture
def here(tmp_path: Path) -> Environment:
    """Return an environment without a current directory, in which only the root is mounted."""
    table = tmp_path / "mountinfo"
    table.write_bytes(ROOT_MOUNT)
    return Environment(
        standing_in=PathStr(""),
        program=(),
        interpreter=(),
        state=PathStr(str(tmp_path / "state-of-jobs")),
        mountinfo=str(table),
    )


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Return a directory that nothing forbids."""
    path = tmp_path / "place" / "target"
    path.mkdir(parents=True)
    return path


def mounted(here: Environment, point: str | Path, kind: str = "ext4", options: str = "rw") -> None:
    """Add a line to the mount table."""
    escaped = str(point).replace("\\", "\\134").replace(" ", "\\040").replace("\n", "\\012")
    with open(here.mountinfo, "a+", encoding="utf-8", errors="surrogateescape") as table:
        table.seek(0)
        number = ROOT_ID + len(table.readlines())
        table.write(f"{number} {ROOT_ID} 0:50 / {escaped} {options} - {kind} source rw\n")


def refusal(path: str | Path, here: Environment) -> Refused:
    """Return the refusal of a target, which must be a sentence with an advice."""
    with pytest.raises(Refused) as refused:
        check(str(path), here)
    assert refused.value.sentence.endswith(".")
    assert refused.value.advice
    return refused.value
