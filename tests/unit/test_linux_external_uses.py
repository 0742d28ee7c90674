"""Uses of a directory in other mount namespaces are found, whichever process is examined."""

import errno
import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from tests.namespaces import other_namespace
from tests.needs import needs_root
from tests.unit.scratching import result_of_child
from tests.waiting_process import waiting_process
from tui_fs.linux import external_uses
from tui_fs.linux.external_uses import ExternalUses, Layer, layers_of, loop_files
from tui_fs.linux.mounts import mount_of, read_mounts


def sentences(directory: Path) -> list[str]:
    """Return what uses a directory."""
    mounts = read_mounts()
    mount = mount_of(str(directory), mounts)
    assert mount is not None
    return [use.sentence for use in ExternalUses.read(mounts).of(str(directory), mount)]


def test_a_directory_that_nothing_uses_has_no_use(tmp_path: Path) -> None:
    needs_root("a mount namespace")
    with other_namespace("true"):
        assert sentences(tmp_path) == []


def test_a_root_that_sees_less_does_not_hide_the_others(tmp_path: Path) -> None:
    needs_root("a mount namespace")
    used, elsewhere = tmp_path / "used", tmp_path / "elsewhere"
    for directory in (used, elsewhere):
        directory.mkdir()
    script = (
        "import os, subprocess, sys\n"
        "subprocess.run(['mount', '--bind', sys.argv[2], sys.argv[1]], check=True)\n"
        "if os.fork():\n"
        "    os.chroot(sys.argv[2])\n"
        "else:\n"
        "    print(flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = ["unshare", "-m", sys.executable, "-I", "-c", script, str(used), str(elsewhere)]
    with waiting_process(command):
        uses = sentences(used)
    assert len(uses) == 1
    assert f"has a file system mounted on {used}" in uses[0]


def test_the_layers_of_an_overlay_are_read_as_the_kernel_writes_them(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    options = r"rw,lowerdir=/a\134:b:l/c\054d::/e,upperdir=/u\040v,workdir=/w,lowerdir+=/x:y"
    table.write_text(f"30 22 0:5 / /m rw - overlay none {options}\n")
    (mount,) = read_mounts(str(table))
    plain = {layer for layer in layers_of(mount) if "\\" not in layer.name}
    assert plain == {
        *(Layer(name, "lower") for name in ("/a:b", "l/c,d", "/e", "/x:y")),
        Layer("/u v", "upper"),
        Layer("/w", "work"),
    }


def test_a_process_that_may_not_be_seen_is_counted() -> None:
    needs_root("becoming another user")

    def count() -> int:
        os.setresuid(65534, 65534, 65534)
        return ExternalUses.read(read_mounts()).unseen_processes

    assert result_of_child(count) > 0


def test_a_loop_device_that_is_detached_while_it_is_read_has_no_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def detached(*_: object) -> NoReturn:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))  # sysfs, once the name is gone

    monkeypatch.setattr(external_uses, "open", detached, raising=False)
    assert loop_files() == {}
