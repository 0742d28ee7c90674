"""What a policy forbids is not deleted, and what is deleted is audited.

Asked at the command line, in the screens, and again by the supervisor itself.
"""

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.conftest import Cli, Json
from tests.e2e.terminal import Terminal
from tests.namespaces import in_mount_namespace
from tests.needs import needs_tool
from tests.trees import Manifest, chain, manifest, many_directories
from tui_fs.job.permission import check_targets
from tui_fs.job.planning import make_plan
from tui_fs.job.start import start
from tui_fs.model.plan import Plan
from tui_fs.model.strategy import Options, StrategyName
from tui_fs.survey.runner import SurveyRunner

RM = StrategyName("rm")

# {place} holds the target, {elsewhere} does not.
FORBIDDING = {
    "never the target": 'never = ["{place}/t"]',
    "never what holds it": 'never = ["{elsewhere}", "{place}/"]',
    "never what it holds": 'never = ["{place}/t/directory-00001"]',
    "allowed elsewhere": 'allowed = ["{elsewhere}"]',
    "allowed nowhere": "allowed = []",
    "another strategy": 'strategies = ["find", "parallel"]',
    "read only": "read_only = true",
}
PERMITTING = (
    'never = ["{elsewhere}", "{place}/t2"]\nallowed = ["{place}"]\n'
    'strategies = ["find", "rm"]\nread_only = false\ntype_name_above_entries = 100\n'
)
DAMAGED: dict[str, bytes] = {
    "no TOML": b"never = [",
    "unknown key": b"nevr = []",
    "wrong type": b"read_only = 1",
    "relative path": b'allowed = ["srv"]',
    "not UTF-8": b'never = ["/\xff"]',
}
# What binds wherever it is asked; the rest is the same code.
BINDING = ("never what holds it", "allowed elsewhere", "another strategy", "read only")
FORGED = (
    b"x\" outcome=done path=y\nevent=end uid=1 '\x1b]0;x\x07\x1b[2J\r\\\xff = "
    + "\u202e\u2028\u00a0".encode()
)
_PAIR = re.compile(r'(\w+)=("[^"]*"|[^ "]*)(?: |\Z)')


@pytest.fixture
def target(tmpfs: Path) -> Path:
    """Return a tree of 9 entries that is alone in its directory."""
    target = tmpfs / "place" / "t"
    target.mkdir(parents=True)
    many_directories(target, 2, 3)
    return target


@pytest.fixture
def before(target: Path) -> Manifest:
    """Return the manifest of the target before the test."""
    return manifest(target)


def write_policy(target: Path, text: str | bytes) -> Path:
    """Write the person's own policy."""
    path = Path(os.environ["XDG_CONFIG_HOME"], "tui-fs", "policy.toml")
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(text, str):
        text = text.format(place=target.parent, elsewhere=target.parent.parent / "x").encode()
    path.write_bytes(text)
    return path


def plan_of(target: Path, strategy: StrategyName = RM) -> Plan:
    """Return the plan that the program makes of a confirmed target."""
    *_, survey = SurveyRunner([str(target)]).run()
    return make_plan(check_targets([str(target)]), survey, strategy, Options())


def report_of(plan: Plan) -> Json:
    """Start the supervisor of a plan directly and return its report."""
    folder = start(plan, lambda: True)
    assert folder is not None
    value = json.loads(Path(folder.report).read_text(encoding="utf-8"))
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("answer", ("--yes", "--dry-run"))
@pytest.mark.parametrize("rule", FORBIDDING)
def test_what_a_policy_forbids_is_refused(
    cli: Cli, target: Path, before: Manifest, rule: str, answer: str
) -> None:
    path = write_policy(target, FORBIDDING[rule])
    # When a user wants to delete against it, or only to see what would run
    finished = cli.run("delete", "--strategy", "rm", answer, target)
    finished.expect(3).assert_one_sentence()
    assert str(path) in finished.stderr
    assert manifest(target) == before
    assert not cli.jobs_directory.exists()


def test_what_a_policy_does_not_forbid_is_deleted(cli: Cli, target: Path) -> None:
    write_policy(target, PERMITTING)
    cli.delete(target, "rm").expect(0)
    assert not target.exists()


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_policy_stops_every_deletion(
    cli: Cli, target: Path, before: Manifest, damage: str
) -> None:
    path = write_policy(target, DAMAGED[damage])
    finished = cli.run("delete", "--strategy", "rm", "--yes", target)
    finished.expect(2).assert_one_sentence()
    assert str(path) in finished.stderr
    assert manifest(target) == before


def test_a_policy_that_is_no_file_or_points_nowhere_is_damaged(
    cli: Cli, target: Path, before: Manifest
) -> None:
    path = write_policy(target, b"")
    makers: tuple[Callable[[], None], ...] = (
        path.mkdir,
        lambda: path.symlink_to("nowhere"),
        lambda: os.mkfifo(path),
    )
    for make in makers:
        path.rmdir() if path.is_dir() else path.unlink()
        make()
        finished = cli.run("delete", "--strategy", "rm", "--yes", target)
        finished.expect(2).assert_one_sentence()
        assert manifest(target) == before


def test_the_name_must_be_confirmed_where_the_policy_wants_it(
    cli: Cli, target: Path, before: Manifest
) -> None:
    write_policy(target, "type_name_above_entries = 8")
    for options in ([], ["--confirm", "tt"], ["--confirm", str(target)], ["--confirm", ""]):
        finished = cli.run("delete", "--strategy", "rm", "--yes", *options, target)
        finished.expect(3).assert_one_sentence()
        assert manifest(target) == before
    # And with the name it is deleted
    cli.run("delete", "--strategy", "rm", "--yes", "--confirm", "t", target).expect(0)
    assert not target.exists()


@pytest.mark.parametrize(
    ("text", "code"),
    (*((FORBIDDING[rule], 3) for rule in BINDING), ("damaged", 2), (PERMITTING, 0)),
    ids=(*BINDING, "damaged", "permitted"),
)
def test_the_administrators_policy_binds_too(
    cli: Cli, tmp_path: Path, target: Path, before: Manifest, text: str, code: int
) -> None:
    etc = tmp_path / "etc"
    (etc / "tui-fs").mkdir(parents=True)
    for name in ("passwd", "group", "nsswitch.conf", "localtime"):
        if Path("/etc", name).exists():
            shutil.copy(Path("/etc", name), etc)
    message = text.format(place=target.parent, elsewhere=tmp_path / "x")
    (etc / "tui-fs" / "policy.toml").write_text(message)
    write_policy(target, "allowed = ['/']\nread_only = false\nnever = []")
    setup = f"mount --bind {shlex.quote(str(etc))} /etc"
    there = cli.wrapped(in_mount_namespace(setup))
    finished = there.run("delete", "--strategy", "rm", "--yes", target).expect(code)
    if code == 0:
        assert not target.exists()
        return
    finished.assert_one_sentence()
    assert "/etc/tui-fs/policy.toml" in finished.stderr
    assert manifest(target) == before


@pytest.mark.parametrize("rule", (*BINDING, "name not typed", "damaged"))
def test_the_supervisor_itself_asks_the_policy(
    cli: Cli, target: Path, before: Manifest, rule: str
) -> None:
    # A plan from a client that did not check the policy
    plan = plan_of(target)
    texts = FORBIDDING | {"name not typed": "type_name_above_entries = 8", "damaged": "never"}
    write_policy(target, texts[rule])
    report = report_of(plan)
    assert report["outcome"] == "refused"
    expected = {"damaged": "badinput", "read only": "read-only"}
    assert report["refusal"]["rule"] == expected.get(rule, "policy")
    assert manifest(target) == before
    assert cli.state_of(plan.job_id) == "refused"


def test_the_supervisor_runs_what_the_policy_permits(cli: Cli, target: Path) -> None:
    plan = replace(plan_of(target), name_typed=True)
    write_policy(target, PERMITTING.replace("100", "0"))
    start(plan, lambda: True)
    cli.wait_for_state(plan.job_id, "done")
    assert not target.exists()


def test_a_policy_made_while_a_job_is_paused_forbids_to_resume(cli: Cli, tmpfs: Path) -> None:
    target = tmpfs / "t"
    many_directories(target, 20, 2_000)
    options = ("--strategy", "rm", "--yes", "--detach", "--rate", "100")
    job = cli.run("delete", *options, target).expect(0).stdout.decode().strip()
    cli.run("pause", job).expect(0)
    write_policy(target, "read_only = true")
    cli.run("resume", job).expect(3).assert_one_sentence()
    assert cli.state_of(job) == "paused"
    cli.run("cancel", job).expect(0)
    cli.wait_for_state(job, "cancelled")
    assert target.exists()


@pytest.mark.parametrize("answer", ("--yes", "--dry-run"))
def test_the_read_only_variable_refuses(
    cli: Cli, target: Path, before: Manifest, answer: str
) -> None:
    finished = cli.run(
        "delete", "--strategy", "rm", answer, target, environment={"TUI_FS_READ_ONLY": "1"}
    )
    finished.expect(3).assert_one_sentence()
    assert "TUI_FS_READ_ONLY" in finished.stderr
    assert manifest(target) == before
    # And a survey still runs
    cli.run("survey", target, environment={"TUI_FS_READ_ONLY": "1"}).expect(0)


def test_the_read_only_variable_binds_the_supervisor(
    target: Path, before: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(target)
    monkeypatch.setenv("TUI_FS_READ_ONLY", "1")
    assert report_of(plan)["refusal"]["rule"] == "read-only"
    assert manifest(target) == before


@pytest.fixture
def read_only_screens(cli: Cli, tmp_path: Path) -> Iterator[Callable[[Path], Terminal]]:
    """Open the screens with --read-only."""
    needs_tool("tmux", "tmux")
    opened: list[Terminal] = []
    (tmp_path / "home").mkdir()

    def open_on(path: Path) -> Terminal:
        terminal = Terminal([cli.program, "--read-only", str(path)], tmp_path / "home")
        opened.append(terminal)
        return terminal

    yield open_on
    for terminal in opened:
        terminal.close()


def test_read_only_screens_never_delete(
    cli: Cli, target: Path, before: Manifest, read_only_screens: Callable[[Path], Terminal]
) -> None:
    # The screens with --read-only, opened on the preview of a target
    terminal = read_only_screens(target.parent)
    terminal.wait_for("complete")
    terminal.press("d")
    terminal.wait_for("counted")
    terminal.press("Enter")
    shown = terminal.wait_for("Deleting is switched off")
    assert "--read-only" in shown
    for key in ("y", "Tab", "Enter", "d", "Enter"):
        terminal.press(key)
    terminal.wait_for("Deleting is switched off")
    assert "Delete permanently?" not in terminal.text()
    assert manifest(target) == before
    assert not cli.jobs_directory.exists()


def test_start_and_end_are_audited_and_no_name_can_forge_a_line(
    cli: Cli, tmpfs: Path, strategy: str
) -> None:
    target = Path(os.fsdecode(os.path.join(os.fsencode(tmpfs), FORGED)))
    chain(target, 1)
    cli.delete(target, strategy).expect(0)
    assert not target.exists()
    job = cli.only_job()
    events = cli.journal(job)
    types = [event["type"] for event in events]
    assert types[:2] == ["JobStarted", "Audited"]
    assert types[-2:] == ["Audited", "JobFinished"]
    lines = [event["line"] for event in events if event["type"] == "Audited"]
    # And each is one line of printable text in which every key occurs once
    for line, event in zip(lines, ("start", "end"), strict=True):
        assert line.isprintable()
        pairs = _PAIR.findall(line)
        keys = [key for key, _ in pairs]
        assert "".join(match[0] for match in _PAIR.finditer(line)) == line
        assert len(keys) == len(set(keys))
        assert all(line.count(f"{key}=") == 1 for key in ("event", "job", "strategy", "path"))
        fields = {key: value.strip('"') for key, value in pairs}
        assert fields["event"] == event
        assert fields["uid"] == str(os.getuid())
        assert (fields["job"], fields["strategy"]) == (job, strategy)
        assert fields["path"].startswith(f"{tmpfs}/x\\x22")
        assert fields.get("outcome") == (None if event == "start" else "done")


def test_a_refused_job_is_audited(cli: Cli, target: Path) -> None:
    plan = plan_of(target)
    write_policy(target, FORBIDDING["never the target"])
    report_of(plan)
    events = cli.journal(plan.job_id)
    assert [event["type"] for event in events] == ["Audited", "JobRefused"]
    fields = dict(_PAIR.findall(events[0]["line"]))
    assert (fields["event"], fields["outcome"]) == ("end", "refused")
    assert (fields["job"], fields["strategy"], fields["deleted_entries"]) == (
        plan.job_id,
        "rm",
        "0",
    )
    assert fields["path"] == str(target)
