"""The answers of a user's own FUSE program do not redirect root."""

import os
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.contracts.calibrating import measured
from tests.fuse.user_server import VICTIM, user_server
from tests.matrix.ordinary_user import UID
from tests.trees import manifest, many_directories
from tui_fs.linux.resolve_path import resolve
from tui_fs.linux.tools import why_untrusted

pytestmark = pytest.mark.root


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Return a file of root's that nothing may touch."""
    (tmp_path / "precious").mkdir(mode=0o700)
    victim = tmp_path / "precious" / VICTIM
    victim.write_text("precious")
    return victim


def test_a_server_that_lies_to_rm_leads_measuring_nowhere(tmpfs: Path, victim: Path) -> None:
    with user_server(tmpfs / "served", UID, lead=victim.parent) as target:
        measured(target)
        assert victim.exists()
        assert os.listdir(target.parent) == ["target"]


def test_a_lab_is_refused_where_a_server_decides(cli: Cli, tmpfs: Path) -> None:
    with user_server(tmpfs / "served", UID) as target:
        finished = cli.run("lab", "run", "race-your-strategies", "--dir", target.parent)
        finished.expect(3).assert_one_sentence()
        assert "Other users could replace directories made" in finished.stderr
        assert os.listdir(target.parent) == ["target"]


def test_a_link_that_a_users_server_shows_is_refused(cli: Cli, tmpfs: Path) -> None:
    (tmpfs / "real").mkdir()
    many_directories(tmpfs / "real" / "target", 2, 2)
    before = manifest(tmpfs / "real")
    with user_server(tmpfs / "served", UID, link=tmpfs / "real"):
        finished = cli.delete(tmpfs / "served" / "link" / "target", "rm").expect(3)
        finished.assert_one_sentence()
        assert "that a user other than you and root can change" in finished.stderr
    assert manifest(tmpfs / "real") == before
    # And a link of root's own program is followed
    with user_server(tmpfs / "roots", 0, link=tmpfs / "real"):
        assert resolve(str(tmpfs / "roots" / "link")) == str(tmpfs / "real")
        assert resolve(str(tmpfs / "roots" / "link" / "target")) == str(tmpfs / "real" / "target")


def test_a_tool_that_a_users_server_shows_is_not_run(tmpfs: Path) -> None:
    with user_server(tmpfs / "served", UID) as target:
        reason = why_untrusted(str(target / "file"))
        assert reason is not None
        assert f"serves the file system at {tmpfs / 'served'}" in reason
    # But it is where root's own program shows it
    with user_server(tmpfs / "roots", 0) as target:
        assert why_untrusted(str(target / "file")) is None
