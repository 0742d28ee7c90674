"""A directory that something else uses is refused by every command that removes or renames it."""

from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

import pytest

from tests.conftest import Cli, wait_until
from tests.contracts.uses import USES, Used
from tests.needs import needs_root
from tests.pathologies.looking import survey_with
from tests.trees import manifest, many_directories
from tui_fs.model.finding import Severity
from tui_fs.model.paths import harmless

COMMANDS = (
    ("delete", "--strategy", "rm", "--yes"),
    ("delete", "--strategy", "rm", "--dry-run"),
    ("delete", "--strategy", "find", "--yes", "--keep-root"),
    ("aside", "--yes"),
    ("aside", "--yes", "--twin"),
    ("recreate", "--yes", "--accept-occupants"),
)


# All commands ask the same rule: each kind of use is tried with a deletion and another command in
# turn, and so each command with at least three kinds.
@pytest.mark.parametrize(
    ("name", "command", "how"),
    list(zip(USES, cycle(COMMANDS[1:]), cycle(("--no-measuring", "--quick")), strict=False)),
    ids=USES,
)
def test_a_directory_in_use_is_found_and_refused_until_the_use_ends(
    cli: Cli, ext4: Path, name: str, command: tuple[str, ...], how: str
) -> None:
    needs_root("mounting")
    with ExitStack() as end:
        used = USES[name](ext4, end)
        before = manifest(used.target)
        _assert_found(cli, used)
        _assert_estimated(cli, used, how)
        for words in (COMMANDS[0], command):
            finished = cli.run(*words, used.target).expect(3)
            finished.assert_one_sentence()
            assert [part for part in used.says if part not in finished.stderr] == []
        assert manifest(used.target) == before
    # The use has ended; a process that an earlier test has left may have copied a mount
    wait_until(lambda: cli.delete(used.target, "rm").code == 0, "a target that nothing uses")
    assert not used.target.exists()


def _assert_estimated(cli: Cli, used: Used, how: str) -> None:
    report = cli.run("estimate", how, "--json", used.target).expect(0).object()
    assert report["recommended"] is None
    for estimate in report["strategies"]:
        assert not estimate["feasible"]
        assert harmless(used.says[0].removeprefix("process ")) in str(estimate["reasons"])


def _assert_found(cli: Cli, used: Used) -> None:
    findings = survey_with(cli, used.target).findings
    (finding,) = (finding for finding in findings if finding.kind == "used-elsewhere")
    assert (finding.path, finding.severity) == (str(used.where), Severity.CRITICAL)
    assert used.says[0] in finding.meaning


def test_an_ordinary_user_reads_what_was_not_checked(cli: Cli, ext4: Path) -> None:
    # Processes of root, whose mount namespaces only root can read
    needs_root("becoming another user")
    target = ext4 / "t"
    many_directories(target, 2, 2)
    ext4.chmod(0o755)
    ordinary = cli.as_ordinary_user(ext4)
    places = {f"XDG_{kind}_HOME": str(ext4) for kind in ("CONFIG", "STATE", "CACHE")}
    finished = ordinary.run("estimate", "--no-measuring", target, environment=places)
    text = finished.expect(0).stdout.decode()
    assert text.count("Unknown: uses in other mount namespaces (this user cannot inspect ") == 1
