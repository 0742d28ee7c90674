"""Where jobs are kept."""

import errno
import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.acl import NAMED_USER, grant
from tests.needs import needs_root
from tui_fs.job import store
from tui_fs.job.store import (
    JobFolder,
    all_jobs,
    create,
    find,
    is_private,
    load_plan,
    made_private,
    new_job_id,
    state_directory,
)
from tui_fs.model.caller import CallerIdentity
from tui_fs.model.errors import BadInput, JobFailed, Refused
from tui_fs.model.paths import PathStr
from tui_fs.model.plan import Expected, Plan
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.model.survey import Totals
from tui_fs.model.target import Pin, Target


def plan(job_id: str = "abc123", created_at: float = 1.7e9) -> Plan:
    """Return a plan for ten files in two directories, at a path that is not UTF-8."""
    return Plan(
        job_id=job_id,
        created_at=created_at,
        targets=(Target(PathStr("/srv/t\udcff"), Pin(1, 2, 3)),),
        strategy=StrategyName("rm"),
        options=Options(),
        tools={"rm": "/bin/rm"},
        expected=Expected(Totals(files=10, directories=2), 0, 0, complete=True),
        predicted=None,
        confirmed_from=PathStr("/"),
        requester=CallerIdentity(0, "root", "", "", "", ""),
    )


def test_a_created_job_is_found_and_its_plan_read() -> None:
    job_id = new_job_id()
    folder = create(plan(job_id))
    assert find(job_id).path == folder.path
    assert (folder.job_id, load_plan(folder)) == (job_id, plan(job_id))


def test_a_job_is_found_by_its_first_characters_if_no_other_has_them() -> None:
    for job_id in ("abc123", "abd456", "abd789", "abd"):
        create(plan(job_id))
    assert find("abc").job_id == "abc123"
    assert find("abd4").job_id == "abd456"
    assert find("abd").job_id == "abd"  # the whole id of a job
    with pytest.raises(BadInput, match="There is no job 'ab'"):
        find("ab")  # so few may be a slip
    create(plan("abd444"))
    with pytest.raises(BadInput, match="Several jobs begin with abd4: ") as refused:
        find("abd4")
    assert "abd444" in str(refused.value) and "abd456" in str(refused.value)


@pytest.mark.parametrize(
    "job_id", ["", "../x", "a/b", ".", "..", "abc123/", "./abc123", "abc\0", "a b", "-", "\n"]
)
def test_what_is_no_job_id_is_refused(job_id: str) -> None:
    create(plan())
    jobs = store.jobs_directory()
    for place in (jobs, f"{jobs}/../x", f"{jobs}/a/b", f"{jobs}/..", f"{jobs}/a b", f"{jobs}/-"):
        os.makedirs(place, exist_ok=True)
        Path(place, "plan.json").write_text("{}")
    with pytest.raises(BadInput, match="no job"):
        find(job_id)


def test_a_job_without_a_plan_is_none() -> None:
    os.makedirs(os.path.join(store.jobs_directory(), "abc"))
    with pytest.raises(BadInput, match="no job 'abc'"):
        find("abc")


def test_a_job_is_not_created_twice() -> None:
    create(plan())
    with pytest.raises(JobFailed, match="cannot be written"):
        create(replace(plan(), created_at=0.0))
    assert load_plan(find("abc123")) == plan()


def test_a_place_that_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(JobFailed, match="Nothing was deleted"):
        create(plan())


def test_jobs_are_listed_newest_first() -> None:
    for age, job_id in enumerate(["new", "older", "oldest"]):
        folder = create(plan(job_id))
        os.utime(folder.plan, (1e9 - age, 1e9 - age))
    os.makedirs(os.path.join(store.jobs_directory(), "begun"))
    assert [folder.job_id for folder in all_jobs()] == ["new", "older", "oldest"]


def test_without_a_state_directory_there_are_no_jobs() -> None:
    assert list(all_jobs()) == []


def test_new_ids_are_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    create(plan("aaaaaa"))
    made = iter([b"\xaa\xaa\xaa", b"\xbb\xbb\xbb"])
    monkeypatch.setattr("os.urandom", lambda _: next(made))
    assert new_job_id() == "bbbbbb"


@pytest.mark.parametrize("home", ["relative/path", ""])
def test_a_state_home_that_is_not_absolute_is_passed_over(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", home)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store.state_directory() == str(tmp_path / ".local" / "state" / "tui-fs")


def test_a_user_without_a_home_has_no_jobs_anywhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", "here")
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    monkeypatch.chdir(tmp_path)
    # It is below a missing directory, not below the current directory
    assert store.state_directory() == "/nonexistent/.local/state/tui-fs"


def test_a_directory_in_memory_that_is_another_users_is_not_used() -> None:
    needs_root("another user's directory")
    runtime = Path(os.environ["XDG_RUNTIME_DIR"])
    runtime.mkdir()
    assert store.emergency_directory() == f"{runtime}/tui-fs/jobs"
    os.chown(runtime, 4321, 4321)
    assert store.emergency_directory() is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"a": "\xff"}', "it is not UTF-8"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b"{", "it is not JSON"),
        (None, "Not a regular file"),
    ],
)
def test_a_file_that_holds_no_json_says_why_in_words(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    path = tmp_path / "plan.json"
    if content is None:
        os.mkfifo(path)
    else:
        path.write_bytes(content)
    with pytest.raises(BadInput) as raised:
        store.read_json(str(path))
    assert raised.value.sentence == f"{path} cannot be read: {why}."


@pytest.mark.parametrize(
    ("is_linked", "whose"), [(False, "the directory"), (True, "the directory"), (True, "the link")]
)
def test_nothing_is_made_on_a_way_that_another_user_can_exchange(
    tmp_path: Path, is_linked: bool, whose: str
) -> None:
    needs_root("another user's directory")
    theirs, third = tmp_path / "theirs", tmp_path / "third"
    theirs.mkdir()
    third.mkdir()
    if is_linked:
        (theirs / "state").symlink_to(third)
    os.lchown(theirs if whose == "the directory" else theirs / "state", 4321, 4321)
    before = os.listdir(theirs)
    assert not store.made_private(f"{theirs}/state/tui-fs/jobs")
    assert os.listdir(theirs) == before
    assert os.listdir(third) == []


@pytest.mark.parametrize("is_there", [False, True])
def test_a_limit_is_no_sign_of_other_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    place = str(tmp_path / "state" / "jobs")
    if is_there:
        assert made_private(place)

    def limited(_: str) -> str:
        raise Refused("It cannot be examined.") from OSError(
            errno.EMFILE, os.strerror(errno.EMFILE)
        )

    monkeypatch.setattr(store, "resolve", limited)
    with pytest.raises(OSError, match="Too many open files"):
        made_private(place)
    assert not is_private(place)


def test_a_state_directory_below_one_that_an_acl_opens_is_not_private(tmp_path: Path) -> None:
    place = tmp_path / "above" / "state" / "jobs"
    assert made_private(str(place))
    grant(tmp_path / "above", NAMED_USER, 65534)
    assert not is_private(str(place))
    assert not made_private(str(place))


def test_a_home_that_an_acl_opens_is_not_the_home_of_roots_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_root("the home of root")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert state_directory().startswith(str(home))
    grant(home, NAMED_USER, 65534)
    assert not state_directory().startswith(str(home))


def test_a_plan_of_another_version_is_refused() -> None:
    folder = create(plan())
    value = json.loads(Path(folder.plan).read_text())
    store.write_json(folder.plan, {**value, "schema": 1})
    with pytest.raises(BadInput, match="another version"):
        load_plan(folder)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"schema": 1}'])
def test_a_damaged_plan_is_bad_input(content: bytes) -> None:
    folder = create(plan())
    Path(folder.plan).write_bytes(content)
    with pytest.raises(BadInput):
        load_plan(folder)


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "x.json")
    store.write_json(path, {"old": 1})

    def power_failure(_: int) -> None:
        raise OSError

    monkeypatch.setattr(os, "fsync", power_failure)
    with pytest.raises(OSError):
        store.write_json(path, {"new": 2})
    assert store.read_json(path) == {"old": 1}


def test_the_names_of_a_folder_are_those_of_the_contract() -> None:
    folder = JobFolder("/jobs/x")
    names = [folder.plan, folder.journal, folder.report, folder.socket, folder.log]
    assert [os.path.basename(name) for name in names] == [
        "plan.json",
        "events.jsonl",
        "report.json",
        "control.sock",
        "log",
    ]
