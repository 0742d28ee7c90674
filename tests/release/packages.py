"""The deb and the rpm: installed into an empty root, run there, and removed.

    python -m pytest -n 0 tests/release/packages.py

Run as root. The name of this module keeps it out of other test runs, as go first compiles nfpm.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import lacks, needs_root, needs_tool
from tui_fs import __version__
from tui_fs.model.paths import PathStr
from tui_fs.safety.policy import Policy, read_policy
from tui_fs.strategies.registry import STRATEGIES

RELEASE_VARIABLE = "TUI_FS_RELEASE"
"""A directory with the files of a release; without it, packages of a small program are made."""

_ROOT = Path(__file__).parents[2]
_FILES = {
    "usr/bin/tui-fs",
    "usr/lib/systemd/system/tui-fs-prune.service",
    "usr/lib/systemd/system/tui-fs-prune.timer",
    "usr/share/bash-completion/completions/tui-fs",
    "usr/share/doc/tui-fs/copyright",
    "usr/share/doc/tui-fs/examples/policy.toml",
    "usr/share/fish/vendor_completions.d/tui-fs.fish",
    "usr/share/man/man1/tui-fs.1.gz",
}
_ZSH = {"deb": "usr/share/zsh/vendor-completions", "rpm": "usr/share/zsh/site-functions"}

pytestmark = [pytest.mark.slow, pytest.mark.root]


def _static_program(place: Path) -> Path:
    source, program = place / "program.c", place / "program"
    source.write_text(f'#include <stdio.h>\nint main(void) {{ puts("tui-fs {__version__}"); }}\n')
    subprocess.run([needs_tool("cc", "gcc"), "-static", "-o", program, source], check=True)
    return program


def _build(place: Path) -> Path:
    """Build packages of a small program; return their directory."""
    if shutil.which("nfpm") is None and shutil.which("go") is None:
        lacks("neither nfpm nor go is installed")
    scripts, out = _ROOT / "scripts", place / "out"
    out.mkdir()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1790000000"}
    share = [sys.executable, str(scripts / "build-shell-files"), str(place)]
    subprocess.run(share, check=True, env=environment)
    command = [scripts / "build-packages", _static_program(place), place / "share", out]
    subprocess.run(command, check=True, env=environment)
    return out


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a deb and an rpm."""
    needs_root("chroot")
    release = os.environ.get(RELEASE_VARIABLE)
    return Path(release) if release else _build(tmp_path_factory.mktemp("packages"))


def _left(root: Path) -> set[str]:
    """Return the files in a root without the package manager's, and tui-fs's directories."""
    paths = {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}
    paths |= {str(path.relative_to(root)) for path in root.rglob("*tui-fs*")}
    return {path for path in paths if not path.startswith(("var/lib/dpkg/", "var/lib/rpm/"))}


def _run_inside(root: Path, *command: str) -> str:
    """Run a command in a root, with /proc and /dev in a mount namespace of its own."""
    script = """set -e; cd "$0"; mkdir -p proc dev
    mount --rbind /proc proc; mount --rbind /dev dev; exec chroot . "$@\""""
    enter = ["unshare", "--mount", "sh", "-c", script, str(root), *command]
    return subprocess.check_output(enter, text=True)


@pytest.mark.parametrize("kind", ["deb", "rpm"])
def test_a_package_installs_runs_in_an_empty_root_and_leaves_nothing(
    kind: str, packages: Path, tmp_path: Path
) -> None:
    (package,) = packages.glob(f"*.{kind}")
    if kind == "deb":
        for name in ("info", "updates", "triggers"):
            (tmp_path / "var/lib/dpkg" / name).mkdir(parents=True)
        (tmp_path / "var/lib/dpkg/status").touch()
        manager = [needs_tool("dpkg", "dpkg"), f"--root={tmp_path}", "--log=/dev/null"]
        install, remove = [*manager, "-i", str(package)], [*manager, "-P", "tui-fs"]
    else:
        manager = [needs_tool("rpm", "rpm"), f"--root={tmp_path}", "--dbpath=/var/lib/rpm"]
        install, remove = [*manager, "-i", str(package)], [*manager, "-e", "tui-fs"]
    subprocess.run(install, check=True)
    directories = {"usr/share/doc/tui-fs"}
    assert _left(tmp_path) == {*_FILES, *directories, f"{_ZSH[kind]}/_tui-fs"}
    for name in _FILES:
        status = (tmp_path / name).stat()
        is_program = name == "usr/bin/tui-fs"
        assert (status.st_uid, status.st_mode & 0o777) == (0, 0o755 if is_program else 0o644)
    assert _run_inside(tmp_path, "/usr/bin/tui-fs", "--version") == f"tui-fs {__version__}\n"
    subprocess.run(remove, check=True)
    assert _left(tmp_path) == set()


def test_two_builds_of_the_packages_are_identical(tmp_path: Path) -> None:
    built = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        built.append(_build(tmp_path / name))
    first, second = ({file.name: file.read_bytes() for file in out.iterdir()} for out in built)
    assert first == second
    assert len(first) == 2


def test_the_example_of_a_policy_restricts_nothing_until_it_is_edited(tmp_path: Path) -> None:
    example = _ROOT / "packaging/policy.toml"
    unchanged = read_policy((str(example),), known_strategies=STRATEGIES)
    assert unchanged == Policy(sources=(str(example),))
    settings = [line for line in example.read_text().splitlines() if " = " in line]
    edited = tmp_path / "policy.toml"
    edited.write_text("\n".join(line.removeprefix("# ") for line in settings))
    assert read_policy((str(edited),), known_strategies=STRATEGIES) == Policy(
        sources=(str(edited),),
        never=(PathStr("/srv/mail"), PathStr("/srv/www/current")),
        allowed=((PathStr("/srv"), PathStr("/var/cache")),),
        strategies=frozenset({"rm", "find", "parallel"}),
        type_name_above_entries=1000,
        read_only=f"the policy {edited}",
        confines=True,
    )
