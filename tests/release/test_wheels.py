"""The source distribution and the wheels: what is in them, and for which machines they are."""

import io
import os
import platform
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.needs import needs_tool

_ROOT = Path(__file__).parents[2]
_MACHINE = platform.machine()
_PURE = "tui_fs-0.1.0-py3-none-any.whl"
_WITH_ENGINE = f"tui_fs-0.1.0-py3-none-manylinux_2_17_{_MACHINE}.musllinux_1_1_{_MACHINE}.whl"
_SDIST = "tui_fs-0.1.0.tar.gz"
_ENGINE = "tui_fs-0.1.0.data/scripts/tui-fs-engine"
_SHARE = {
    "bash-completion/completions/tui-fs",
    "fish/vendor_completions.d/tui-fs.fish",
    "man/man1/tui-fs.1",
    "zsh/site-functions/_tui-fs",
}

pytestmark = pytest.mark.slow


def _build(place: Path, **changes: str) -> dict[str, bytes]:
    """Build with a script instead of the engine; return the files by name."""
    engine, out = place / "engine", place / "out"
    engine.write_text("#!/bin/sh\n")
    out.mkdir()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SOURCE_DATE_EPOCH": "1790000000", **changes}
    subprocess.run([_ROOT / "scripts/build-wheels", out, engine], check=True, env=environment)
    return {file.name: file.read_bytes() for file in out.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files of a release by name."""
    needs_tool("git", "git")
    return _build(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def wheels(built: dict[str, bytes]) -> dict[str, dict[str, bytes]]:
    """Return the contents of each wheel: its files by path."""
    contents: dict[str, dict[str, bytes]] = {}
    for name in built.keys() - {_SDIST}:
        with zipfile.ZipFile(io.BytesIO(built[name])) as wheel:
            contents[name] = {path: wheel.read(path) for path in wheel.namelist()}
    return contents


def test_one_wheel_is_for_both_c_libraries_and_one_for_any_machine(
    built: dict[str, bytes], wheels: dict[str, dict[str, bytes]]
) -> None:
    assert built.keys() == {_PURE, _WITH_ENGINE, _SDIST}
    tags = {
        name: {
            line.removeprefix("Tag: ")
            for line in files["tui_fs-0.1.0.dist-info/WHEEL"].decode().splitlines()
            if line.startswith("Tag: ")
        }
        for name, files in wheels.items()
    }
    assert tags == {
        _PURE: {"py3-none-any"},
        _WITH_ENGINE: {
            f"py3-none-manylinux_2_17_{_MACHINE}",
            f"py3-none-musllinux_1_1_{_MACHINE}",
        },
    }


def test_a_wheel_owns_one_name_in_site_packages(wheels: dict[str, dict[str, bytes]]) -> None:
    for files in wheels.values():
        tops = {path.split("/")[0] for path in files}
        assert tops == {"tui_fs", "tui_fs-0.1.0.data", "tui_fs-0.1.0.dist-info"}
        assert files["tui_fs-0.1.0.dist-info/top_level.txt"] == b"tui_fs\n"


def test_a_wheel_has_every_file_of_the_package(wheels: dict[str, dict[str, bytes]]) -> None:
    listed = subprocess.check_output(["git", "ls-files", "tui_fs", "widgets"], cwd=_ROOT, text=True)
    expected = {
        path.replace("widgets/", "tui_fs/widgets/", 1) if path.startswith("widgets/") else path
        for path in listed.split()
    }
    for files in wheels.values():
        assert {path for path in files if path.startswith("tui_fs/")} == expected - {
            "tui_fs/widgets"
        }


def test_completions_and_the_man_page_are_in_the_wheels(
    wheels: dict[str, dict[str, bytes]],
) -> None:
    for files in wheels.values():
        prefix = "tui_fs-0.1.0.data/data/share/"
        assert {path[len(prefix) :] for path in files if path.startswith(prefix)} == _SHARE


def test_only_the_wheel_of_a_machine_has_the_engine(
    built: dict[str, bytes], wheels: dict[str, dict[str, bytes]]
) -> None:
    assert wheels[_WITH_ENGINE].keys() - wheels[_PURE].keys() == {_ENGINE}
    assert wheels[_PURE].keys() < wheels[_WITH_ENGINE].keys()
    with zipfile.ZipFile(io.BytesIO(built[_WITH_ENGINE])) as wheel:
        assert wheel.getinfo(_ENGINE).external_attr >> 16 & 0o777 == 0o755


def test_no_required_package_lacks_a_binary_for_musl(wheels: dict[str, dict[str, bytes]]) -> None:
    metadata = wheels[_PURE]["tui_fs-0.1.0.dist-info/METADATA"].decode()
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: ")]
    assert not [line for line in required if "py-spy" in line and "extra ==" not in line]


def test_the_source_distribution_builds_the_engine(built: dict[str, bytes]) -> None:
    with tarfile.open(fileobj=io.BytesIO(built[_SDIST])) as sdist:
        names = {name.removeprefix("tui_fs-0.1.0/") for name in sdist.getnames()}
    listed = subprocess.check_output(["git", "ls-files", "engine"], cwd=_ROOT, text=True)
    assert set(listed.split()) <= names
    assert {"pyproject.toml", "tui_fs/widgets/__init__.py"} <= names


def test_two_builds_are_identical(built: dict[str, bytes], tmp_path: Path) -> None:
    previous = os.umask(0o077)
    try:
        assert _build(tmp_path, TZ="Asia/Tokyo", LC_ALL="C") == built
    finally:
        os.umask(previous)
