"""Refusals of forbidden targets: exit 3, one sentence, nothing touched."""

import os
import shutil
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import Cli, Finished
from tests.needs import needs_root
from tests.trees import Sentinel, manifest, many_directories

SYSTEM_DIRECTORIES = tuple(
    path
    for path in (
        *("/", "//", "/.", "/..", "/tmp/..", "/usr/", "/usr/../usr"),
        *("/home", "/usr", "/etc", "/var", "/boot", "/proc", "/sys", "/dev", "/tmp"),
    )
    if os.path.isdir(path)
)


@pytest.fixture(params=("text", "json"))
def json_option(request: pytest.FixtureRequest) -> list[str]:
    return ["--json"] if request.param == "json" else []


@dataclass(frozen=True, slots=True)
class HarmlessCli:
    """The program with an `rm` that deletes nothing and remembers that it was called."""

    cli: Cli
    path: str
    marker: Path

    def delete(self, target: str, *options: str, cwd: Path | None = None) -> Finished:
        """Ask for a deletion that can do no harm, even where the program is wrong."""
        arguments = ("delete", "--strategy", "rm", *options, "--", target)
        return self.cli.run(*arguments, cwd=cwd, environment={"PATH": self.path})

    def refuses(self, target: str, *options: str, cwd: Path | None = None) -> Finished:
        """Fail unless a confirmed deletion is refused before anything runs."""
        finished = self.delete(target, "--yes", *options, cwd=cwd).expect(3)
        finished.assert_one_sentence()
        assert not self.marker.exists(), f"rm was run: {self.marker.read_text()}"
        return finished


@dataclass(slots=True)
class Stub:
    """An `rm` that deletes nothing, in a directory of its own."""

    path: Path
    marker: Path
    is_used: bool = False


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Stub:
    """Make the harmless rm, which says in a file that it was called."""
    place = tmp_path_factory.mktemp("stubs")
    path, marker = place / "rm", place / "rm-was-run"
    path.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = --version ] && exec {shutil.which("rm")} --version\n'
        f'echo "$@" >> {marker}\n'
    )
    path.chmod(0o755)
    return Stub(path, marker)


@pytest.fixture
def harmless(cli: Cli, stub: Stub, tmp_path: Path) -> HarmlessCli:
    """Put the harmless rm first in PATH; before anything else see that the program would use it."""
    harmless = HarmlessCli(cli, f"{stub.path.parent}:{os.environ['PATH']}", stub.marker)
    if not stub.is_used:
        bait = tmp_path / "bait"
        bait.mkdir()
        shown = harmless.delete(str(bait), "--dry-run", "--json").expect(0).object()
        assert shown["command"][0][0] == str(stub.path), "the harmless rm is not used"
        stub.is_used = True
    stub.marker.unlink(missing_ok=True)
    return harmless


@pytest.mark.parametrize("path", SYSTEM_DIRECTORIES)
def test_refuses_a_system_directory(
    harmless: HarmlessCli, path: str, json_option: list[str]
) -> None:
    harmless.refuses(path, *json_option)


@pytest.mark.parametrize("path", SYSTEM_DIRECTORIES)
def test_refuses_a_system_directory_in_a_dry_run_too(harmless: HarmlessCli, path: str) -> None:
    harmless.delete(path, "--dry-run").expect(3).assert_one_sentence()


@pytest.mark.parametrize("path", ("/usr", "/tmp", "/"))
def test_refuses_to_empty_a_system_directory(harmless: HarmlessCli, path: str) -> None:
    harmless.refuses(path, "--keep-root")


@pytest.mark.parametrize("path", (".", "..", "./", "../", "x/.", "x/..", "x/./", "x/../", "./."))
def test_refuses_a_dot_path(
    harmless: HarmlessCli, tmpfs: Path, path: str, json_option: list[str]
) -> None:
    here = tmpfs / "outer" / "here"
    many_directories(here.parent, 1, 1)
    many_directories(here, 1, 1)
    (here / "x").mkdir()
    before = manifest(tmpfs)
    harmless.refuses(path, *json_option, cwd=here)
    assert manifest(tmpfs) == before


@pytest.mark.parametrize("levels", (0, 1, 3))
def test_refuses_an_ancestor_of_the_working_directory(
    harmless: HarmlessCli, tmpfs: Path, levels: int, json_option: list[str]
) -> None:
    target = tmpfs / "target"
    here = target.joinpath(*["below"] * levels)
    here.mkdir(parents=True)
    harmless.refuses(str(target), *json_option, cwd=here)
    assert here.is_dir()


RUNNING_PROGRAM = {
    "scripts": sysconfig.get_path("scripts"),
    "environment": sys.prefix,
    "python": os.path.dirname(os.path.realpath(sys.executable)),
    "package": str(Path((find_spec("tui_fs") or pytest.fail("no tui_fs")).origin or "/").parent),
}


@pytest.mark.parametrize("place", RUNNING_PROGRAM)
def test_refuses_an_ancestor_of_the_running_program(
    harmless: HarmlessCli, place: str, json_option: list[str]
) -> None:
    directory = RUNNING_PROGRAM[place]
    harmless.refuses(directory, *json_option)
    harmless.refuses(os.path.dirname(directory), *json_option)


@pytest.mark.parametrize("below", ("", "state", "state/tui-fs/jobs"))
def test_refuses_what_holds_the_state_directory(
    harmless: HarmlessCli,
    tmpfs: Path,
    below: str,
    json_option: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = tmpfs / "target"
    state = target / "state"
    (state / "tui-fs" / "jobs").mkdir(parents=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    harmless.refuses(str(target / below), *json_option)
    assert (state / "tui-fs" / "jobs").is_dir()


@pytest.mark.parametrize("slash", ("/", "//"))
def test_refuses_a_symlink_and_says_where_it_points(
    harmless: HarmlessCli, tmpfs: Path, slash: str, json_option: list[str]
) -> None:
    sentinel = Sentinel(tmpfs)
    (tmpfs / "link").symlink_to(sentinel.root)
    finished = harmless.refuses(f"{tmpfs}/link{slash}", *json_option)
    assert str(sentinel.root) in finished.stderr
    assert (tmpfs / "link").is_symlink()
    sentinel.assert_whole()


def _file(path: Path) -> None:
    path.write_bytes(b"content")


def _device(path: Path) -> None:
    needs_root("making a device node")
    os.mknod(path, 0o20600, os.makedev(1, 3))


@pytest.mark.parametrize("make", (_file, os.mkfifo, _device), ids=("file", "fifo", "device"))
def test_no_strategy_for_directories_deletes_what_is_none(
    harmless: HarmlessCli, tmpfs: Path, make: Callable[[Path], None], json_option: list[str]
) -> None:
    make(tmpfs / "name")
    harmless.delete(f"{tmpfs}/name", "--yes", *json_option).expect(2).assert_one_sentence()
    harmless.refuses(f"{tmpfs}/name/", *json_option)
    assert not harmless.marker.exists()
    assert os.path.lexists(tmpfs / "name")


@pytest.mark.parametrize("path", ("no-such-name", "no/such/name", "", "file/below"))
def test_calls_a_path_that_is_not_there_a_usage_error(
    harmless: HarmlessCli, tmpfs: Path, path: str, json_option: list[str]
) -> None:
    _file(tmpfs / "file")
    finished = harmless.delete(path, "--yes", *json_option, cwd=tmpfs).expect(2)
    finished.assert_one_sentence()
    assert not harmless.marker.exists()


def test_needs_a_yes_where_no_terminal_can_be_asked(
    cli: Cli, tmpfs: Path, strategy: str, json_option: list[str]
) -> None:
    many_directories(tmpfs / "target", 2, 2)
    before = manifest(tmpfs)
    options = ("--strategy", strategy, *json_option)
    finished = cli.run("delete", *options, tmpfs / "target").expect(2)
    # It is not
    finished.assert_one_sentence()
    assert "--yes" in finished.stderr
    assert manifest(tmpfs) == before
    assert cli.jobs() == []
