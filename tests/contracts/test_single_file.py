"""A single file is a job like any other, and nothing but the confirmed file is removed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.filesystems import mount_bind, mount_overlay, unmount_below
from tests.needs import needs_root, needs_tool
from tests.waiting_process import StartPython
from tui_fs.job.permission import check_targets
from tui_fs.job.planning import make_plan, remainder_of
from tui_fs.job.start import start
from tui_fs.linux.pins import take_pin
from tui_fs.model.errors import BadInput, Refused
from tui_fs.model.paths import PathStr
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.strategies import rmtree_child
from tui_fs.strategies.registry import STRATEGIES
from tui_fs.survey.single_file import survey_file

MIB = 1 << 20
RMTREE = StrategyName("rmtree")


@pytest.fixture
def place(tmpfs: Path) -> Path:
    """Return a directory with a file of 8 MiB and a sentinel."""
    return _filled(tmpfs)


def _filled(root: Path) -> Path:
    place = root / "place"
    place.mkdir()
    (place / "big.log").write_bytes(b"x" * (8 * MIB))
    (place / "kept").write_bytes(b"sentinel")
    return place


def test_only_the_file_goes_and_its_space_comes_back(cli: Cli, filesystem: Path) -> None:
    place = _filled(filesystem)
    subprocess.run(["sync", "-f", place], check=True)
    report = cli.run("delete", "--yes", "--json", place / "big.log").expect(0).report()
    assert os.listdir(place) == ["kept"]
    assert report["outcome"] == "done", report["explanation"]
    assert report["explanation"] == "The file is gone."
    assert (report["deleted_files"], report["deleted_directories"]) == (1, 0)
    assert report["targets"][0]["path"] == str(place / "big.log")
    assert report["targets"][0]["gone"] is True
    assert report["expected"]["freed_bytes_min"] == report["expected"]["freed_bytes_max"]
    assert abs(report["freed_bytes"] - 8 * MIB) <= MIB
    assert report["failed"] == 0
    assert report["predicted"]["syscalls"]["unlinkat"] == 1
    assert report["syscalls"]["unlinkat"]["calls"] == 1


@pytest.mark.parametrize("confine", ["auto", "always", "off"])
@pytest.mark.parametrize("name", ["-rf", "a b\n'\"$", "\udcff", ".", "x (deleted)"])
def test_any_name_is_deleted_however_it_is_confined(
    cli: Cli, place: Path, name: str, confine: str
) -> None:
    if name == ".":
        name = "n" * 255
    (place / name).touch()
    cli.run("delete", "--yes", "--confine", confine, "--", place / name).expect(0)
    assert sorted(os.listdir(place)) == ["big.log", "kept"]


@pytest.mark.parametrize("kind", ["fifo", "socket", "dangling link"])
def test_special_files_are_deleted(cli: Cli, place: Path, kind: str) -> None:
    path = place / "special"
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "socket":
            code = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
            subprocess.run([sys.executable, "-c", code, path], check=True)
        case _:
            path.symlink_to("nowhere")
    cli.run("delete", "--yes", path).expect(0)
    assert not os.path.lexists(path)


def test_symbolic_link_goes_alone_and_is_described(cli: Cli, place: Path) -> None:
    target = place / "data"
    target.mkdir()
    (target / "inside").touch()
    (place / "link").symlink_to(target)
    dry = cli.run("delete", "--dry-run", place / "link").expect(0)
    assert f"Only the link is deleted, not what it leads to: {target}" in dry.stdout.decode()
    cli.run("delete", "--yes", place / "link").expect(0)
    assert not os.path.lexists(place / "link")
    assert (target / "inside").exists()


@pytest.mark.parametrize("name", ["big.log/", "link/", "big.log/.", "link/.."])
def test_path_of_a_directory_never_means_a_file(cli: Cli, place: Path, name: str) -> None:
    (place / "data").mkdir()
    (place / "link").symlink_to(place / "data")
    cli.run("delete", "--yes", f"{place}/{name}").expect(3).assert_one_sentence()
    assert sorted(os.listdir(place)) == ["big.log", "data", "kept", "link"]


def test_name_of_a_file_with_other_names_frees_nothing(cli: Cli, filesystem: Path) -> None:
    place = _filled(filesystem)
    os.link(place / "big.log", place / "other")
    finished = cli.run("delete", "--yes", place / "big.log").expect(0)
    assert "The file has 1 other name (hard links)." in finished.stderr
    assert "The name is gone." in finished.stdout.decode()
    assert sorted(os.listdir(place)) == ["kept", "other"]
    job = cli.jobs_directory / cli.only_job() / "report.json"
    report = json.loads(job.read_text())
    assert report["outcome"] == "done"
    assert report["expected"]["freed_bytes_max"] == 0


def test_sparse_file_shows_allocated_and_apparent_size(cli: Cli, place: Path) -> None:
    with open(place / "sparse", "wb") as file:
        file.truncate(1 << 30)
    dry = cli.run("delete", "--dry-run", place / "sparse").expect(0)
    assert "0 B allocated (1.0 GiB apparent), frees 0 B" in dry.stdout.decode()


def test_reflinked_file_may_free_nothing(cli: Cli, xfs: Path) -> None:
    place = _filled(xfs)
    subprocess.run(["cp", "--reflink=always", place / "big.log", place / "copy"], check=True)
    subprocess.run(["sync", "-f", place], check=True)
    report = cli.run("delete", "--yes", "--json", place / "big.log").expect(0).report()
    assert report["expected"]["freed_bytes_min"] == 0
    assert report["expected"]["shared_bytes"] == 8 * MIB


def test_processes_with_the_file_open_are_shown_and_explain_the_space(
    cli: Cli, filesystem: Path, start_python: StartPython
) -> None:
    place = _filled(filesystem)
    pid = start_python("file = open(sys.argv[1])", place / "big.log")
    dry = cli.run("delete", "--dry-run", place / "big.log").expect(0)
    assert "1 process has this file open: python" in dry.stdout.decode()
    assert f"({pid}). Its space comes back only when it closes it." in dry.stdout.decode()
    report = cli.run("delete", "--yes", "--json", place / "big.log").expect(0).report()
    assert report["outcome"] == "done"
    assert [cause["kind"] for cause in report["space_causes"]] == ["held-open"]
    assert report["expected"]["freed_bytes_min"] == 0


def test_estimate_examines_a_file(cli: Cli, place: Path) -> None:
    estimate = cli.run("estimate", "--json", place / "big.log").expect(0).object()
    assert [each["strategy"] for each in estimate["strategies"]] == ["rmtree"]
    assert estimate["recommended"] == "rmtree"
    assert estimate["entries"] == 1
    assert estimate["freed_bytes_min"] == 8 * MIB
    quick = cli.run("estimate", "--quick", place / "big.log").expect(0)
    assert "frees 8.0 MiB" in quick.stdout.decode()
    cli.run("estimate", "/etc/passwd").expect(3).assert_one_sentence()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--strategy", "rm"], 2),
        (["--keep-root"], 2),
        (["--name", "*.log"], 2),
        (["--shard", "1/2"], 2),
        (["--directory-id", "0123456789abcdef"], 3),
    ],
)
def test_options_of_directories_are_refused(
    cli: Cli, place: Path, options: list[str], code: int
) -> None:
    finished = cli.run("delete", "--yes", *options, place / "big.log")
    finished.expect(code).assert_one_sentence()
    assert (place / "big.log").exists()


def test_several_files_and_mixtures_are_refused(cli: Cli, place: Path) -> None:
    (place / "directory").mkdir()
    for second in ("kept", "directory"):
        finished = cli.run("delete", "--yes", place / "big.log", place / second)
        finished.expect(3).assert_one_sentence()
    assert sorted(os.listdir(place)) == ["big.log", "directory", "kept"]


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/bin", "/etc/hostname", "/proc/self/status", "/dev/null", sys.executable],
)
def test_files_of_the_system_are_refused(cli: Cli, path: str) -> None:
    if not os.path.lexists(path):
        pytest.fail(f"{path} does not exist here")
    cli.run("delete", "--dry-run", path).expect(3).assert_one_sentence()


@pytest.mark.parametrize("letter", ["i", "a"])
@pytest.mark.parametrize("where", ["big.log", "."])
def test_immutable_and_append_only_files_are_refused(
    cli: Cli, ext4: Path, letter: str, where: str
) -> None:
    place = _filled(ext4)
    subprocess.run(["chattr", f"+{letter}", place / where], check=True)
    finished = cli.run("delete", "--yes", place / "big.log").expect(3)
    finished.assert_one_sentence()
    assert "chattr" in finished.stderr
    assert (place / "big.log").exists()


def test_file_that_is_a_mount_point_is_refused(cli: Cli, place: Path) -> None:
    needs_root("mounting")
    subprocess.run(["mount", "--bind", place / "kept", place / "big.log"], check=True)
    try:
        for name in ("big.log", "kept"):  # mounted on, and mounted elsewhere
            cli.run("delete", "--yes", place / name).expect(3).assert_one_sentence()
    finally:
        subprocess.run(["umount", place / "big.log"], check=True)
    assert sorted(os.listdir(place)) == ["big.log", "kept"]


def test_file_on_a_read_only_mount_is_refused(cli: Cli, place: Path) -> None:
    point = mount_bind(place, place.parent / "point")
    subprocess.run(["mount", "-o", "remount,bind,ro", point], check=True)
    try:
        finished = cli.run("delete", "--yes", point / "big.log").expect(3)
        finished.assert_one_sentence()
    finally:
        unmount_below(point)
    assert (place / "big.log").exists()


@pytest.mark.parametrize("name", ["big.log", "other"])
def test_file_behind_a_loop_device_is_refused_by_any_name(cli: Cli, ext4: Path, name: str) -> None:
    place = _filled(ext4)
    losetup = needs_tool("losetup", package="mount")
    os.link(place / "big.log", place / "other")
    attach = [losetup, "--find", "--show", str(place / "big.log")]
    device = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
    try:
        finished = cli.run("delete", "--yes", place / name).expect(3)
        finished.assert_one_sentence()
    finally:
        subprocess.run([losetup, "--detach", device], check=True)
    assert device in finished.stderr
    assert (place / name).exists()


def test_active_swap_file_is_refused(cli: Cli, ext4: Path) -> None:
    place = _filled(ext4)
    swap = place / "swap"
    swap.write_bytes(b"\0" * (8 * MIB))
    swap.chmod(0o600)
    subprocess.run([needs_tool("mkswap", package="util-linux"), swap], check=True)
    enabled = subprocess.run(["swapon", swap], check=False, capture_output=True, text=True)
    if enabled.returncode:
        pytest.skip(f"swapon is not possible here: {enabled.stderr}; run on a host with swap")
    try:
        cli.run("delete", "--yes", swap).expect(3).assert_one_sentence()
    finally:
        subprocess.run(["swapoff", swap], check=True)
    assert swap.exists()


def test_file_on_an_overlay_is_done_when_it_is_gone(cli: Cli, tmpfs: Path) -> None:
    def fill(lower: Path) -> None:
        (lower / "big.log").write_bytes(b"x" * MIB)

    merged = mount_overlay(tmpfs, fill)
    report = cli.run("delete", "--yes", "--json", merged / "big.log").expect(0).report()
    assert report["outcome"] == "done", report["explanation"]
    assert report["expected"]["freed_bytes_min"] == 0
    assert os.listdir(merged) == []


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ('never = ["{place}/big.log"]', 3),
        ('never = ["{place}"]', 3),
        ('allowed = ["{place}"]', 0),
        ('allowed = ["/srv"]', 3),
        ('strategies = ["rm"]', 3),
        ("read_only = true", 3),
        ("type_name_above_entries = 0", 3),
        ('confine = "always"', 0),
    ],
)
def test_policy_holds_for_a_file(cli: Cli, place: Path, policy: str, code: int) -> None:
    home = place.parent / "config"
    (home / "tui-fs").mkdir(parents=True)
    (home / "tui-fs" / "policy.toml").write_text(policy.replace("{place}", str(place)))
    finished = cli.run(
        "delete", "--yes", place / "big.log", environment={"XDG_CONFIG_HOME": str(home)}
    )
    finished.expect(code)
    assert (place / "big.log").exists() is (code != 0)


def test_required_name_is_the_name_of_the_file(cli: Cli, place: Path) -> None:
    home = place.parent / "config"
    (home / "tui-fs").mkdir(parents=True)
    (home / "tui-fs" / "policy.toml").write_text("type_name_above_entries = 0")
    typed = ("--yes", "--confirm", "big.log", str(place / "big.log"))
    cli.run("delete", *typed, environment={"XDG_CONFIG_HOME": str(home)}).expect(0)


def _replace(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"another file")


def _exchange(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.write_bytes(b"another file")


def _make_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


@pytest.mark.parametrize("change", [_replace, _exchange, _make_directory, _link])
def test_file_that_changed_after_the_confirmation_is_kept(
    cli: Cli, filesystem: Path, change: object
) -> None:
    place = _filled(filesystem)
    path = place / "big.log"
    assert callable(change)
    targets = check_targets([str(path)], allows_file=True)
    plan = make_plan(targets, survey_file(PathStr(str(path))), RMTREE, Options())
    change(path)
    before = {name: os.lstat(place / name).st_ino for name in os.listdir(place)}
    folder = start(plan, lambda: True)
    assert folder is not None
    cli.wait_for_state(plan.job_id, "refused")
    assert {name: os.lstat(place / name).st_ino for name in os.listdir(place)} == before


def test_no_call_comes_between_the_comparison_and_the_removal(tmp_path: Path) -> None:
    strace = needs_tool("strace", package="strace")
    (tmp_path / "file").touch()
    step = STRATEGIES[RMTREE].file_step(
        "file", take_pin(str(tmp_path / "file"), any_kind=True), {"python": sys.executable}
    )
    traced = subprocess.run(
        [strace, *step[0]], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    lines = traced.stderr.splitlines()
    removal = next(at for at, line in enumerate(lines) if line.startswith("unlinkat("))
    assert lines[removal - 1].startswith("newfstatat(")
    assert '"file"' in lines[removal - 1]
    assert '"file"' in lines[removal]
    assert not (tmp_path / "file").exists()


def test_tool_keeps_another_file_of_that_name(tmp_path: Path) -> None:
    confirmed = tmp_path / "file"
    confirmed.touch()
    status = confirmed.stat()
    confirmed.rename(tmp_path / "moved")
    confirmed.touch()
    code = (
        f"import sys; sys.path.insert(0, sys.argv[1]); import rmtree_child as c; "
        f"sys.exit(c.delete_file('file', {status.st_dev}, {status.st_ino}))"
    )
    where = os.path.dirname(rmtree_child.__file__)
    finished = subprocess.run(
        [sys.executable, "-I", "-c", code, where], cwd=tmp_path, check=False, capture_output=True
    )
    assert finished.returncode == 1
    assert b"leads to another file" in finished.stderr
    assert confirmed.exists()


def test_resume_accepts_only_the_same_file(place: Path) -> None:
    path = place / "big.log"
    targets = check_targets([str(path)], allows_file=True)
    plan = make_plan(targets, survey_file(PathStr(str(path))), RMTREE, Options())
    descriptor = os.open(path, os.O_RDONLY)  # else its inode may be used again
    assert remainder_of(plan).targets == targets
    _replace(path)
    with pytest.raises(Refused, match="is not the file that job"):
        remainder_of(plan)
    path.unlink()
    with pytest.raises(BadInput, match="nothing is left"):
        remainder_of(plan)
    os.close(descriptor)


def test_list_of_jobs_names_the_file(cli: Cli, place: Path) -> None:
    cli.run("delete", "--yes", place / "big.log").expect(0)
    (job,) = cli.jobs()
    assert job["target"] == str(place / "big.log")
    assert job["state"] == "done"


def test_only_a_deletion_accepts_files(cli: Cli, place: Path) -> None:
    with pytest.raises(Refused, match="is not a directory"):
        check_targets([str(place / "big.log")])
    for command in ("aside", "recreate"):
        cli.run(command, "--yes", place / "big.log").expect(3).assert_one_sentence()
    assert sorted(os.listdir(place)) == ["big.log", "kept"]
