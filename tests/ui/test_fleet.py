"""The screens of many hosts, with answers that a test gives."""

import json
import queue
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Static

from tests.conftest import DEADLINE_S, wait_until
from tests.ui.recorded import RUNNING, Host, at_all_sizes, screen_text, settle, wait_for
from tui_fs.fleet.access import Account
from tui_fs.fleet.connections import Ended, HostCommand, Line
from tui_fs.fleet.deletion import FleetDeletion, Phase
from tui_fs.fleet.fleet import Answer, Fleet, _Host
from tui_fs.model.codec import Json, encode
from tui_fs.model.strategy import Argv
from tui_fs.screens.base import Settings
from tui_fs.screens.browser.screen import BrowserScreen
from tui_fs.screens.fleet import FleetPreviewScreen, FleetScreen
from tui_fs.screens.fleet_client import Asked, Fetched, FleetClient, Heard, Progressed
from tui_fs.widgets.footer import Footer
from tui_fs.widgets.progress_line import ProgressLine

HOSTS = ("db3", "web1", "web2", "web3")
PATH = "/var/cache/app"
JOB = "7f3a01"
LARGE, MEDIUM = (120, 40), (80, 24)
GIB = 1 << 30


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IGNORED_KEYS_S", "IGNORED_BY_ITSELF_S"):
        monkeypatch.setattr(f"tui_fs.widgets.confirm_dialog.{name}", 0)


class RecordingClient(FleetClient):
    """Notes the requests of the screens; the test posts the answers."""

    brought_to = ()

    def __init__(self, hosts: Sequence[str] = HOSTS) -> None:
        self.hosts, self.options = tuple(hosts), ()
        self.at_once, self.max_failures = 64, 0
        self.asked: list[tuple[tuple[str, ...], Argv]] = []
        self.fetched: list[str] = []
        self.deleted: list[tuple[Mapping[str, Argv], bool]] = []
        self.followed: list[Mapping[str, Sequence[str]]] = []
        self.orders: list[Callable[[FleetDeletion], None]] = []
        self.post: Callable[[Message], Any] = lambda _: None

    def start(self, post: Callable[[Message], Any]) -> None:
        self.post = post

    def ask(self, hosts: Sequence[str], arguments: Argv) -> None:
        self.asked.append((tuple(hosts), arguments))

    def fetch(self, host: str, path: str, file: str) -> None:
        del path, file
        self.fetched.append(host)

    def delete(
        self, arguments: Mapping[str, Argv], job_ids: Mapping[str, str], *, canary: bool
    ) -> None:
        assert all(f"--job-id={job_ids[host]}" in argv for host, argv in arguments.items())
        self.deleted.append((arguments, canary))

    def follow(self, job_ids: Mapping[str, Sequence[str]]) -> None:
        self.followed.append(job_ids)

    def order(self, order: Callable[[FleetDeletion], None]) -> None:
        self.orders.append(order)


class QuietFleet(Fleet):
    """A fleet whose events a test gives."""

    def __init__(self) -> None:
        self.hosts, self.options = HOSTS, ()
        self._known = {host: _Host(host, Account(), program="/usr/bin/tui-fs") for host in HOSTS}
        self.abandoned: list[tuple[str, str]] = []
        self.started: list[tuple[str, Argv, str]] = []
        self.coming: list[Line | Ended] = []

    def start(
        self,
        host: str,
        arguments: Argv,
        purpose: str = "",
        *,
        is_long: bool = False,  # noqa: ARG002
    ) -> None:
        self.started.append((host, arguments, purpose))

    def next_event(self) -> Line | Ended | None:
        return self.coming.pop(0) if self.coming else None

    def abandon(self, host: str, purpose: str = "") -> None:
        self.abandoned.append((host, purpose))

    @property
    def is_busy(self) -> bool:
        return False

    def close(self) -> None:
        pass


def survey(host: str, entries: int, used: float) -> Heard:
    room = {
        "kind": "ext4", "source": "/dev/vda1", "mount_point": "/", "is_read_only": False,
        "total_bytes": 100 * GIB, "free_bytes": int(100 * GIB * (1 - used)),
        "available_bytes": int(100 * GIB * (1 - used)), "total_inodes": 1000, "free_inodes": 600,
    }  # fmt: skip
    finding = {
        "kind": "huge-directory", "severity": "warning", "path": PATH,
        "meaning": f"{entries:,} entries in one directory.",
    }  # fmt: skip
    value = {
        "entries": entries, "allocated_bytes": entries * 4096, "file_system": room,
        "pathologies": [finding] if entries > 100_000 else [],
    }  # fmt: skip
    return Heard("survey", Answer(host, 0, value))


def estimate(host: str, entries: int, refused: str | None = None) -> Heard:
    strategies = [
        {
            "strategy": name, "seconds_low": low, "seconds_high": 2 * low, "feasible": True,
            "syscalls": {"unlinkat": entries}, "other_calls": 1_000, "uncounted_calls": 100,
            "processes": 2,
        }
        for name, low in (("rm", 4.0), ("parallel", 3.0))
    ]  # fmt: skip
    value = {
        "entries": entries, "freed_bytes_min": 0, "freed_bytes_max": entries * 4096,
        "strategies": strategies, "recommended": "parallel", "refused": refused,
    }  # fmt: skip
    return Heard("estimate", Answer(host, 0, value))


def dry_run(entries: int, seconds_high: float = 6.0) -> dict[str, Json]:
    totals: dict[str, Json] = {
        "files": entries, "directories": 0, "symlinks": 0, "other": 0,
        "allocated_bytes": entries * 4096,
    }  # fmt: skip
    return {
        "strategy": "parallel",
        "expected": {
            "totals": totals, "complete": True,
            "freed_bytes_min": 0, "freed_bytes_max": entries * 4096,
        },
        "predicted": {
            "seconds_low": 3.0, "seconds_high": seconds_high, "syscalls": {"unlinkat": entries},
            "processes": 2,
        },
        "directory_ids": ["83ca6a3c76d39fea"],
    }  # fmt: skip


def running(
    fleet: QuietFleet, hosts: Sequence[str] = HOSTS[1:], *, canary: bool = False
) -> FleetDeletion:
    arguments: dict[str, Argv] = dict.fromkeys(hosts, ("delete", "--yes", "--json", PATH))
    return FleetDeletion(fleet, arguments, dict.fromkeys(hosts, JOB), at_once=64, canary=canary)


FETCH = HostCommand("web1", "", "fetch")


def hear_job(fleet: QuietFleet, host: str, job_id: str = "") -> None:
    command = HostCommand(host, "", f"follow {host} {job_id}".rstrip())
    for event in RUNNING:
        fleet.coming.append(Line(command, json.dumps(encode(event)).encode()))


def end_job(
    fleet: QuietFleet,
    host: str,
    outcome: str = "done",
    code: int = 0,
    deleted: int = 0,
    job_id: str = "",
) -> None:
    report = {
        "type": "report", "outcome": outcome, "explanation": "The directory is gone.",
        "deleted_files": deleted,
    }  # fmt: skip
    command = HostCommand(host, "", f"follow {host} {job_id}".rstrip())
    fleet.coming.append(Line(command, json.dumps(report).encode()))
    fleet.coming.append(Ended(command, code, True, ()))


def handle_all(fleet: QuietFleet, deletion: FleetDeletion) -> None:
    deletion.step()
    while fleet.coming:
        deletion.step()


async def answered(pilot: Pilot[None], client: RecordingClient) -> None:
    """Let three hosts count, and one be unreachable."""
    client.post(survey("web1", 1_204_113, 0.97))
    client.post(survey("web2", 40_212, 0.41))
    client.post(survey("web3", 12, 0.12))
    unreached = Answer("db3", None, problem="connect to host db3 port 22: Connection refused")
    client.post(Heard("survey", unreached))
    await wait_for(pilot, "Connection refused")
    await settle(pilot)


async def test_hosts(picture: SnapshotAssertion) -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        await pilot.press("s", "s", "j", "space")
        await settle(pilot)
        assert await at_all_sizes(pilot) == picture
    count = ("survey", "--json", "--", PATH)
    assert client.asked == [(HOSTS, count), (HOSTS, ("jobs", "--json"))]


def jobs(host: str, *states: str, path: str = PATH, first_id: int = 1) -> Heard:
    value = [
        {
            "id": f"j{number}", "state": state, "strategy": "rm", "targets": [{"path": path}],
            "deleted_entries": 1, "expected_entries": 4, "failed": 0,
        }
        for number, state in enumerate(states, first_id)
    ]  # fmt: skip
    return Heard("jobs", Answer(host, 0, value))


@pytest.mark.parametrize("size", [LARGE, MEDIUM], ids=["large", "medium"])
async def test_jobs_that_run_already_are_shown_and_followed(size: tuple[int, int]) -> None:
    """As after the terminal that started them was closed."""
    client, fleet = RecordingClient(), QuietFleet()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=size) as pilot:
        await answered(pilot, client)
        await pilot.press("w")
        await wait_for(pilot, "No job is running in this directory.")
        client.post(jobs("web1", "done", "running", "paused", path=f"{PATH}/old"))
        client.post(jobs("web2", "running", path="/var/cache/apple"))  # elsewhere
        client.post(jobs("web3", "paused"))
        await wait_for(pilot, "jobs run on 2 hosts: w follows them")
        shown = screen_text(pilot.app)
        assert "running 25 %, and 1 more" in shown
        assert "paused 25 %" in shown
        await pilot.press("j")
        await wait_for(pilot, f"web1: running 25 %, and 1 more: job j2 in {PATH}/old")
        await pilot.press("w")
        assert client.followed == [{"web1": ["j2", "j3"], "web3": ["j1"]}]
        deletion = FleetDeletion.following(fleet, {"web1": [JOB, "j3"], "web3": ["j1"]})
        hear_job(fleet, "web1", JOB)
        end_job(fleet, "web1", job_id="j3")
        handle_all(fleet, deletion)
        client.post(Progressed(deletion))
        await wait_for(pilot, "0 of 2 hosts done")
        shown = screen_text(pilot.app)
        assert "w follows" not in shown
        assert "deleting " in shown  # by the job that is not over
        for key in ("w", "r", "d"):  # all of them would wait for its end
            asked = len(client.asked)
            await pilot.press("j", key)
            await wait_for(pilot, "A deletion is running.")
            assert (len(client.asked), client.fetched, len(client.followed)) == (asked, [], 1)
        await pilot.press("enter")
        assert client.fetched == ["web3"]


async def test_a_lost_job_that_still_runs_is_shown_as_running() -> None:
    client, fleet = RecordingClient(), QuietFleet()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        deletion = running(fleet, ("web1", "web2"))
        for job in deletion.jobs.values():
            job.phase, job.exit_code, job.problem = Phase.OVER, 255, "The connection was lost."
        client.post(Progressed(deletion))
        await wait_for(pilot, "! failed: The connection was lost.")
        client.post(jobs("web1", "running"))
        await wait_for(pilot, "running 25 %")
        shown = screen_text(pilot.app)
        assert shown.count("! failed") == 1
        assert "jobs run on 1 host: w follows them" in shown


@pytest.mark.parametrize("size", [LARGE, MEDIUM, (60, 20)], ids=["large", "medium", "small"])
async def test_a_full_file_system_is_shown_in_full(size: tuple[int, int]) -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=size) as pilot:
        client.post(survey("web1", 9, 1.0))
        await wait_for(pilot, "100 % !")


async def test_a_reason_has_the_cells_that_the_names_of_the_hosts_leave() -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=(60, 20)) as pilot:
        await answered(pilot, client)
        (line,) = (each for each in screen_text(pilot.app).splitlines() if "db3  " in each)
        assert line.endswith("Connection refused")


@pytest.mark.parametrize("columns", [80, 120])
async def test_hosts_whose_names_have_a_long_beginning_in_common_differ(columns: int) -> None:
    hosts = ["web-frontend-prod-eu-01", "web-frontend-prod-eu-02"]
    client = RecordingClient(hosts)
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=(columns, 24)) as pilot:
        for host in hosts:
            client.post(survey(host, 12, 0.12))
        await wait_for(pilot, "2 counted")
        shown = screen_text(pilot.app)
        assert all(host in shown for host in hosts)


@pytest.mark.parametrize("size", [MEDIUM, (40, 15)])
async def test_each_refusal_of_a_host_can_be_read(size: tuple[int, int]) -> None:
    client = RecordingClient()
    preview = FleetPreviewScreen(client, HOSTS, PATH, Settings())
    async with Host(preview).run_test(size=size) as pilot:
        for host in HOSTS:
            preview.take_answer(estimate(host, 12, f"The rule of {host} protects this directory."))
        await wait_for(pilot, "rule of db3")
        while "rule of web3" not in screen_text(pilot.app):
            assert "<> scroll" in screen_text(pilot.app)
            await pilot.press(">")
            await settle(pilot)


async def test_totals_of_hosts_lose_whole_figures() -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=(40, 15)) as pilot:
        await answered(pilot, client)
        await wait_for(pilot, "3 counted · 1,244,337 entries\n")


async def test_order_and_marks() -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        await pilot.press("s")  # by entries
        await settle(pilot)
        lines = screen_text(pilot.app).splitlines()
        places = [
            next(i for i, line in enumerate(lines) if host in line)
            for host in ("web1", "web2", "web3", "db3")
        ]
        assert places == sorted(places)
        await pilot.press("A")  # all that have answered
        await wait_for(pilot, "3 marked")
        await pilot.press("u")
        await wait_for(pilot, "3 counted")


@pytest.mark.slow
async def test_filter() -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=MEDIUM) as pilot:
        await answered(pilot, client)
        # By the state or the name; letters are text while the field is open
        await pilot.press("f")
        await settle(pilot)
        shown = screen_text(pilot.app)
        assert "enter accept  esc show all hosts" in shown and "d delete" not in shown
        assert "a part of a host's name or state" in shown
        await pilot.press(*"huge", "enter")
        await settle(pilot)
        shown = screen_text(pilot.app)
        assert "web1" in shown and "web2" not in shown and "db3" not in shown
        assert "d delete" in shown and "enter accept" not in shown
        await pilot.press("d")
        await wait_for(pilot, "0 of 1 host answered")
        assert client.asked[-1][0] == ("web1",)
        await pilot.press("escape", "escape")
        await wait_for(pilot, "web2")
        await pilot.press("f", *"nothing")
        await settle(pilot)
        assert "web1" not in screen_text(pilot.app)
        await pilot.press("escape", "escape")
        await wait_for(pilot, "q quits.")


async def test_what_a_host_says_cannot_change_the_terminal() -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        client.post(Heard("survey", Answer("db3", None, problem="\x1b[2J[red]gone")))
        await wait_for(pilot, "[red]gone")
        assert "\x1b[2J" not in screen_text(pilot.app)


async def test_host_is_browsed_read_only(tmp_path: Any) -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        await pilot.press("enter")  # db3, which is not reached
        assert client.fetched == []
        await pilot.press("j", "enter")
        assert client.fetched == ["web1"]
        client.post(Fetched("web1", "", "No answer within 30 s."))
        await wait_for(pilot, "web1: No answer within 30 s.")
        file = tmp_path / "web1.json"
        file.write_text(json.dumps([1, 2, {}, [{"name": PATH}, {"name": "old", "dsize": 4096}]]))
        client.post(Fetched("web1", str(file), ""))
        await wait_for(pilot, "web1, read-only")
        assert isinstance(pilot.app.screen, BrowserScreen)
        assert pilot.app.screen.settings.read_only
        await pilot.press("left")
        await wait_for(pilot, "4 hosts")


@pytest.mark.slow
def test_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    fleet, posted = QuietFleet(), queue.SimpleQueue[Message]()
    client = FleetClient(fleet, 64)
    client.start(posted.put)
    client.fetch("web1", PATH, str(tmp_path / "none" / "file"))
    refused = posted.get(timeout=DEADLINE_S)
    assert isinstance(refused, Fetched)
    assert refused.problem.endswith("file cannot be written: No such file or directory.")
    # A disk that fills up; and the client still works
    fleet.coming += [Line(FETCH, bytes(1 << 20)), Ended(FETCH, 255, True, ())]
    client.fetch("web1", PATH, "/dev/full")
    full = posted.get(timeout=DEADLINE_S)
    assert isinstance(full, Fetched)
    assert full.problem == "/dev/full cannot be written: No space left on device."
    assert fleet.abandoned == [("web1", "fetch")]
    client.close()


def test_hosts_whose_jobs_are_not_over_are_known_after_the_end() -> None:
    fleet = QuietFleet()
    client = FleetClient(fleet, 1)
    client.start(lambda _: None)
    hosts = HOSTS[1:]
    arguments: dict[str, Argv] = dict.fromkeys(hosts, ("delete", PATH))
    hear_job(fleet, "web1")
    client.delete(arguments, dict.fromkeys(hosts, JOB), canary=False)
    wait_until(lambda: client.jobs_in(Phase.RUNNING) == ["web1"], "a job that runs")
    client.close()
    assert client.jobs_in(Phase.WAITING) == ["web2", "web3"]


def test_followed_jobs_are_attached_to() -> None:
    fleet, posted = QuietFleet(), queue.SimpleQueue[Message]()
    client = FleetClient(fleet, 1)
    client.start(posted.put)
    for host in ("web1", "web2"):
        hear_job(fleet, host, JOB)
        end_job(fleet, host, job_id=JOB)
    client.follow({"web1": [JOB], "web2": [JOB]})
    message = posted.get(timeout=DEADLINE_S)
    while not (isinstance(message, Progressed) and message.deletion.is_over):
        message = posted.get(timeout=DEADLINE_S)
    attach: Argv = ("attach", "--json", JOB)
    assert fleet.started == [(host, attach, f"follow {host} {JOB}") for host in ("web1", "web2")]
    client.close()


def test_a_host_is_browsed_while_jobs_run(tmp_path: Path) -> None:
    fleet, posted = QuietFleet(), queue.SimpleQueue[Message]()
    client = FleetClient(fleet, 64)
    client.start(posted.put)
    hear_job(fleet, "web1", JOB)
    client.follow({"web1": [JOB]})
    wait_until(lambda: client.jobs_in(Phase.RUNNING) == ["web1"], "a job that runs")
    file = tmp_path / "web1.json"
    for _ in range(2):  # the second one waits for the first
        client.fetch("web1", PATH, str(file))
    wait_until(lambda: fleet.started[-1][2] == "fetch", "the start of the survey")
    fleet.coming += [Line(FETCH, b"[1]"), Ended(FETCH, 0, True, ())]
    while not isinstance(message := posted.get(timeout=DEADLINE_S), Fetched):
        pass
    assert (message.problem, file.read_bytes()) == ("", b"[1]\n")
    assert [purpose for _, _, purpose in fleet.started].count("fetch") == 1
    assert client.jobs_in(Phase.RUNNING) == ["web1"]
    client.close()
    assert not client.jobs_in(Phase.LOST)


async def test_commands_name_how_the_hosts_are_reached() -> None:
    client = RecordingClient()
    client.options = ("--ssh=ssh -J gate", "--become")
    screen = FleetScreen(client, PATH, Settings())
    async with Host(screen).run_test(size=LARGE):
        words = ("tui-fs", "fleet", "survey", "--ssh=ssh -J gate", "--become", "db3,web[1-3]", PATH)
        assert screen.command_to_copy() == words


async def test_deletion_is_previewed_confirmed_and_started(picture: SnapshotAssertion) -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        await pilot.press("A", "d")
        await wait_for(pilot, "asking the hosts")
        client.post(estimate("web2", 40_212))  # the first host is not the first to answer
        client.post(estimate("web1", 1_204_113))
        await wait_for(pilot, "2 of 3 hosts answered")
        await pilot.press("enter")
        await wait_for(pilot, "Not all hosts have answered yet.")
        client.post(estimate("web3", 12, refused="A policy protects this directory."))
        await wait_for(pilot, "3 of 3 hosts answered")
        await settle(pilot)
        assert await at_all_sizes(pilot) == picture(name="preview")
        await pilot.resize_terminal(*LARGE)
        await pilot.press("enter")
        hosts, arguments = client.asked[-1]
        assert hosts == ("web1", "web2")
        assert arguments == (
            "delete", "--dry-run", "--json", "--strategy=parallel", "--", PATH,
        )  # fmt: skip
        refused = Answer("web2", 3, problem="Another job deletes there.")
        client.post(
            Asked(client.asked[-1][1], {"web1": Answer("web1", 0, dry_run(9)), "web2": refused})
        )
        await wait_for(pilot, "Delete on 1 host?")
        assert "not on web2: Another job deletes there." in screen_text(pilot.app)
        await pilot.press(*"app", "enter")
        await wait_for(pilot, "does not match")
        assert client.deleted == []
        await pilot.press(*["backspace"] * 3, *"1 app", "enter")
        await settle(pilot)
        ((started, has_canary),) = client.deleted
        assert has_canary
        assert list(started) == ["web1"]
        assert [word for word in started["web1"] if "--job-id" not in word] == [
            "delete", "--yes", "--json", "--strategy=parallel", "--confirm=app",
            "--directory-id=83ca6a3c76d39fea", "--", PATH,
        ]  # fmt: skip


async def test_the_preview_has_the_times_of_the_confirmation() -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        await pilot.press("A", "d")
        for host in ("web3", "web2", "web1"):
            client.post(estimate(host, 9))
        await wait_for(pilot, "6.0\u00a0s–12\u00a0s")  # the first host alone, then the two others
        await pilot.press("o")
        await wait_for(pilot, "3.0\u00a0s–6.0\u00a0s        3.0\u00a0s–6.0\u00a0s")
        await pilot.press("o", "enter")
        hosts, arguments = client.asked[-1]
        plans = {host: Answer(host, 0, dry_run(9, seconds_high=30.0)) for host in hosts}
        client.post(Asked(arguments, plans))
        await wait_for(pilot, "with parallel in 6.0 s to 60 s")
        await pilot.press("escape")
        await wait_for(pilot, "6.0\u00a0s–60\u00a0s         3.0\u00a0s–30\u00a0s")


async def test_marked_hosts_that_have_not_answered_are_named_in_the_preview() -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        await pilot.press("space", "space", "d")  # db3 and web1
        await wait_for(pilot, "! not on db3: connect to host db3 port 22: Connection refused")
        assert client.asked[-1][0] == ("web1",)


async def test_a_host_counts_only_once_at_the_same_time() -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        await pilot.press("r", "r", "r")
        client.post(survey("web1", 7, 0.2))
        await wait_for(pilot, "7")
        await settle(pilot)
        asked = [hosts for hosts, arguments in client.asked if arguments[0] == "survey"]
    assert asked == [HOSTS, HOSTS, ("web1",)]  # after its answer, as of the last key


async def test_answers_for_an_earlier_preview_are_none_for_this_one() -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        await pilot.press("A", "d")
        client.post(estimate("web1", 9))
        client.post(estimate("web2", 9))
        client.post(estimate("web3", 9))
        await wait_for(pilot, "3 of 3 hosts answered")
        await pilot.press("enter")
        hosts, earlier = client.asked[-1]
        await pilot.press("escape", "u", "j", "d")
        await wait_for(pilot, "0 of 1 host answered")
        client.post(estimate("web2", 9))
        client.post(Asked(earlier, {host: Answer(host, 0, dry_run(9)) for host in hosts}))
        client.post(estimate("web1", 9))
        await wait_for(pilot, "1 of 1 host answered")
        await pilot.press("enter")
        client.post(Asked(earlier, {host: Answer(host, 0, dry_run(9)) for host in hosts}))
        await settle(pilot)
        assert isinstance(pilot.app.screen, FleetPreviewScreen)
        client.post(Asked(client.asked[-1][1], {"web1": Answer("web1", 0, dry_run(9))}))
        await wait_for(pilot, "Delete on 1 host?")


async def test_the_preview_shows_the_order_of_the_hosts() -> None:
    client = RecordingClient()
    client.at_once, client.max_failures = 2, 1
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        await pilot.press("A", "d")
        client.post(estimate("web1", 9))
        await wait_for(pilot, "at most 2 at the same time · stop after 1 failure")
        assert isinstance(pilot.app.screen, FleetPreviewScreen)
        words = pilot.app.screen.command_to_copy()
        assert {"--serial=2", "--max-failures=1", "--canary"} < set(words)


def test_no_further_deletion_starts_after_the_failures_that_are_accepted() -> None:
    fleet = QuietFleet()
    client = FleetClient(fleet, 1, 1)
    client.start(lambda _: None)
    hosts = HOSTS[1:]
    end_job(fleet, "web1", "partial", 1)
    client.delete(dict.fromkeys(hosts, ("delete", PATH)), dict.fromkeys(hosts, JOB), canary=False)
    wait_until(lambda: client.jobs_in(Phase.SKIPPED) == ["web2", "web3"], "the end")
    client.close()
    assert [host for host, *_ in fleet.started] == ["web1"]


async def test_nothing_is_deleted_when_every_host_refuses() -> None:
    client = RecordingClient()
    screen = FleetPreviewScreen(client, ("web1",), PATH, Settings())
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        await pilot.app.push_screen(screen)
        client.post(estimate("web1", 9))
        await wait_for(pilot, "1 of 1 host answered")
        await pilot.press("enter")
        client.post(
            Asked(client.asked[-1][1], {"web1": Answer("web1", 3, problem="It is a mount point.")})
        )
        await wait_for(pilot, "Every host refuses.")
        assert "! not on web1: It is a mount point." in screen_text(pilot.app)
    assert client.deleted == []


async def test_the_options_of_the_preview_fit_one_line() -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=(40, 15)) as pilot:
        await answered(pilot, client)
        await pilot.press("A", "d")
        for host in ("web1", "web2", "web3"):
            client.post(estimate(host, 9))
        await wait_for(pilot, "3 of 3 hosts answered")
        await settle(pilot)
        assert pilot.app.screen.query_one("#options").size.height == 1
        assert "at the same time" not in screen_text(pilot.app)
        assert pilot.app.screen.max_scroll_y == 0


async def test_cancelling_is_offered_only_while_a_deletion_runs() -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        await settle(pilot)
        keys = pilot.app.screen.query_one(Footer)
        assert ("d", "delete…") in keys.keys
        assert ("c", "cancel…") not in keys.keys
        client.post(Progressed(running(QuietFleet())))
        await settle(pilot)
        assert ("d", "delete…") not in keys.keys
        assert keys.keys[0] == ("c", "cancel…")


async def test_the_state_of_a_host_begins_with_the_reason() -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=MEDIUM) as pilot:
        await answered(pilot, client)
        rows = [line.split() for line in screen_text(pilot.app).splitlines() if "› db3 " in line]
        assert rows == [["›", "db3", "–", "–", "Connection", "refused"]]
        assert "db3: connect to host db3 port 22: Connection refused" in screen_text(pilot.app)


async def test_a_finding_that_does_not_fit_is_marked_as_cut() -> None:
    client = RecordingClient()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=(40, 15)) as pilot:
        await answered(pilot, client)
        message = survey("web1", 1_204_113, 0.97)
        assert isinstance(message.answer.value, dict)
        message.answer.value["pathologies"][0]["meaning"] = "So many entries are slow to list. " * 9
        client.post(message)
        await pilot.press("j")
        await settle(pilot)
        assert str(pilot.app.screen.query_one("#about-host", Static).content).endswith("…")


@pytest.mark.slow
async def test_running_deletion(picture: SnapshotAssertion) -> None:
    client, fleet = RecordingClient(), QuietFleet()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        deletion = running(fleet)
        hear_job(fleet, "web1")
        hear_job(fleet, "web2")
        end_job(fleet, "web3", "partial", 1)
        handle_all(fleet, deletion)
        client.post(Progressed(deletion))
        await wait_for(pilot, "0 of 3 hosts done, 1 failed !")
        await settle(pilot)
        assert await at_all_sizes(pilot) == picture
        # The filter finds failed hosts by that word
        await pilot.press("f", *"failed", "enter")
        await settle(pilot)
        shown = screen_text(pilot.app)
        assert "web3" in shown and "db3" not in shown
        await pilot.press("escape")
        # Only one deletion at a time
        await pilot.press("d")
        await wait_for(pilot, "A deletion is running.")
        await pilot.press("c")
        await wait_for(pilot, "Cancel the deletion on all hosts?")
        await pilot.press("right", "enter")
        await settle(pilot)
    (order,) = client.orders
    order(deletion)
    assert deletion.is_cancelled
    cancelled = [host for host, _, purpose in fleet.started if purpose.startswith("cancel")]
    assert cancelled == ["web1", "web2"]


async def test_figures_from_before_a_deletion_are_not_shown_after_it() -> None:
    client, fleet = RecordingClient(), QuietFleet()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        deletion = running(fleet, ("web1", "web2"))
        end_job(fleet, "web1")
        handle_all(fleet, deletion)
        client.post(Progressed(deletion))
        await wait_for(pilot, "1 of 2 hosts done")
        await settle(pilot)
        shown = screen_text(pilot.app)
        assert "1,204,113" not in shown
        assert "40,212" in shown  # the deletion there is not over
        assert "2 counted" in shown


async def test_a_first_host_that_failed_without_a_reason_is_not_called_done() -> None:
    client, fleet = RecordingClient(), QuietFleet()
    async with Host(FleetScreen(client, PATH, Settings())).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        deletion = running(fleet, canary=True)
        end_job(fleet, "web1", "done", 1)
        handle_all(fleet, deletion)
        client.post(Progressed(deletion))
        await wait_for(pilot, "Continue on the 2 other hosts?")
        shown = screen_text(pilot.app)
        assert "web1: ! failed" in shown
        assert "next on web[2-3]: " in shown
        assert "done, without a failure" not in shown


@pytest.mark.slow
@pytest.mark.parametrize("goes_on", [True, False])
async def test_others_wait_for_the_answer_after_the_first_host(goes_on: bool) -> None:
    client, fleet = RecordingClient(), QuietFleet()
    screen = FleetScreen(client, PATH, Settings())
    async with Host(screen).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        deletion = running(fleet, canary=True)
        hear_job(fleet, "web1")
        handle_all(fleet, deletion)
        expected = deletion.jobs["web1"].snapshot.expected_entries
        end_job(fleet, "web1", deleted=expected)
        handle_all(fleet, deletion)
        deletion.step()
        assert [host for host, *_ in fleet.started] == ["web1"]
        client.post(Progressed(deletion))
        client.post(Progressed(deletion))  # asked once only
        await wait_for(pilot, "Continue on the 2 other hosts?")
        assert "on web[2-3]" in screen_text(pilot.app)
        fraction = screen.query_one(ProgressLine).fraction  # of all hosts, also those that wait
        assert fraction is not None
        assert 0.9 < fraction < 1
        await pilot.press(*(["right"] if goes_on else []), "enter")
        await settle(pilot)
        assert isinstance(pilot.app.screen, FleetScreen)
    (order,) = client.orders
    order(deletion)
    deletion.step()
    started = ["web1", "web2", "web3"] if goes_on else ["web1"]
    assert [host for host, *_ in fleet.started] == started
    assert deletion.is_over is not goes_on


async def test_deleting_can_be_switched_off() -> None:
    client = RecordingClient()
    screen = FleetScreen(client, PATH, Settings(read_only=True))
    async with Host(screen).run_test(size=LARGE) as pilot:
        await answered(pilot, client)
        await pilot.press("A", "d")
        await wait_for(pilot, "--read-only")
        assert pilot.app.screen is screen
