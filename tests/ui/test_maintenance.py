"""The maintenance screen, on real directories."""

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from tests.ui.recorded import Host, at_all_sizes, screen_text, until, wait_for
from tui_fs.job.maintenance import Prospect, look, put_aside
from tui_fs.maintenance.open_users import OpenUsers
from tui_fs.model.errors import BadInput
from tui_fs.model.paths import PathStr
from tui_fs.model.target import Pin, Target
from tui_fs.screens.base import Settings
from tui_fs.screens.maintenance import MaintenanceScreen
from tui_fs.screens.preview import PreviewScreen

HELD_ENTER_S = 0.4


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    """Return a directory with a file."""
    directory = tmp_path / "spool"
    directory.mkdir()
    (directory / "letter").write_bytes(b"x")
    return directory


@pytest.mark.slow
@pytest.mark.parametrize("keys", [(), ("j", "enter")], ids=["list", "question"])
async def test_screen(
    keys: tuple[str, ...], picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(path: str, *, to_recreate: bool) -> Prospect:
        if to_recreate:
            raise BadInput(
                "The directory is not empty.",
                "Empty it first: tui-fs delete /srv/spool --keep-root",
            )
        return Prospect(Target(PathStr(path), Pin(1, 2, 3)), 4096, OpenUsers((), 2))

    monkeypatch.setattr("tui_fs.screens.maintenance.look", look)
    monkeypatch.setattr("tui_fs.screens.maintenance.records", lambda: ([], []))
    monkeypatch.setattr("tui_fs.screens.maintenance.missing_figures", lambda _: ())
    async with Host(MaintenanceScreen("/srv/spool", Settings())).run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "rename it now")
        await pilot.press(*keys)
        assert await at_all_sizes(pilot) == picture


async def _answer(pilot: Pilot[None], *, yes: bool) -> None:
    await wait_for(pilot, "No, go back")
    await pilot.pause(HELD_ENTER_S)  # what comes sooner was meant for the screen below
    await pilot.press(*(["right"] if yes else []), "enter")


@pytest.mark.slow
async def test_a_directory_is_set_aside_and_put_back(spool: Path) -> None:
    screen = MaintenanceScreen(str(spool), Settings())
    async with Host(screen).run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "rename it now")
        await pilot.press("j", "j", "enter")
        await _answer(pilot, yes=True)
        await wait_for(pilot, "To put it back:")
        await wait_for(pilot, "put back")
        await pilot.press("j", "k")
        await wait_for(pilot, "enter do it…")
        assert list(spool.iterdir()) == []
        (aside,) = [path for path in spool.parent.iterdir() if "tui-fs-aside" in path.name]
        assert (aside / "letter").exists()
        await pilot.press("G")
        await wait_for(pilot, "show what deleting it would cost")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, PreviewScreen))
        await wait_for(pilot, "gentle [x]")
        assert aside.name in screen_text(pilot.app)
        await pilot.press("escape", "k", "enter")
        await _answer(pilot, yes=True)
        await wait_for(pilot, "back.")
        assert (spool / "letter").exists()
        assert not aside.exists()


@pytest.mark.slow
async def test_nothing_is_done_without_a_yes(spool: Path) -> None:
    screen = MaintenanceScreen(str(spool), Settings())
    async with Host(screen).run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "rename it now")
        await pilot.press("j", "enter")
        await _answer(pilot, yes=False)
        await pilot.pause()
        assert [path.name for path in spool.parent.iterdir() if "spool" in path.name] == ["spool"]
        assert not screen.has_acted


async def test_what_is_impossible_is_said_and_not_asked(spool: Path) -> None:
    async with Host(MaintenanceScreen(str(spool), Settings())).run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "The directory is not empty.")
        await wait_for(pilot, "--keep-root")  # below the table, which cuts it
        assert "enter do it…" not in screen_text(pilot.app)
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(pilot.app.screen, MaintenanceScreen)


@pytest.mark.slow
async def test_what_was_interrupted_is_put_in_order(spool: Path) -> None:
    # A run that was killed: the twin is set aside, and another process wrote into it
    record = put_aside(look(str(spool), to_recreate=False), with_twin=True).record
    aside, twin = Path(record.aside), spool.parent / "twin"
    spool.rename(twin)
    aside.rename(spool)
    twin.rename(aside)
    for name in ("letter", "late"):
        (aside / name).touch()
    screen = MaintenanceScreen(str(spool), Settings())
    async with Host(screen).run_test(size=(120, 30)) as pilot:
        await wait_for(pilot, "repair")
        await pilot.press("j", "j", "j", "enter")
        await _answer(pilot, yes=True)
        await wait_for(pilot, "is repaired")
        await wait_for(pilot, "into the directory: 2")
        await wait_for(pilot, "letter existed in both directories")
        assert not aside.exists()
        assert len(list(spool.iterdir())) == 3


@pytest.mark.slow
async def test_what_was_replaced_since_the_check_is_not_touched(spool: Path) -> None:
    screen = MaintenanceScreen(str(spool), Settings())
    async with Host(screen).run_test(size=(80, 24)) as pilot:
        await wait_for(pilot, "rename it now")
        await pilot.press("j", "enter")
        await wait_for(pilot, "No, go back")
        spool.rename(spool.parent / "elsewhere")
        spool.mkdir()
        await _answer(pilot, yes=True)
        await wait_for(pilot, "replaced or renamed")
        assert spool.exists()
