"""A directory that something else uses is refused by every command that removes or renames it."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import Cli, Finished, wait_until
from tests.contracts.uses import USES, Used
from tests.needs import needs_root
from tests.pathologies.looking import survey_with
from tests.trees import manifest, many_directories
from tui_fs.model.finding import Severity
from tui_fs.model.paths import harmless


@pytest.fixture(params=USES)
def used(request: pytest.FixtureRequest, ext4: Path) -> Iterator[tuple[Used, ExitStack]]:
    """Yield a directory in each kind of use, and what ends the use."""
    needs_root("mounting")
    with ExitStack() as end:
        yield USES[request.param](ext4, end), end


def _assert_refused(finished: Finished, used: Used) -> None:
    finished.expect(3).assert_one_sentence()
    for words in used.says:
        assert words in finished.stderr


def test_a_directory_in_use_is_refused_until_the_use_ends(
    cli: Cli, used: tuple[Used, ExitStack]
) -> None:
    # A directory that something else uses
    scene, end = used
    target = scene.target
    before = manifest(target)
    for command in (
        ("delete", "--strategy", "rm", "--yes"),
        ("delete", "--strategy", "rm", "--dry-run"),
        ("delete", "--strategy", "find", "--yes", "--keep-root"),
        ("aside", "--yes"),
        ("aside", "--yes", "--twin"),
        ("recreate", "--yes", "--accept-occupants"),
    ):
        _assert_refused(cli.run(*command, target), scene)
    # And nothing was deleted
    assert manifest(target) == before
    # And when the use has ended, it is deleted; namespaces of other tests may have copied a mount
    end.close()
    wait_until(lambda: cli.delete(target, "rm").code == 0, "a target that nothing uses")
    assert not target.exists()


def test_an_estimate_reports_the_use(cli: Cli, used: tuple[Used, ExitStack]) -> None:
    # A directory that something else uses
    scene, _ = used
    # When it is estimated, quickly or not
    for option in ("--no-measuring", "--quick"):
        report = cli.run("estimate", option, "--json", scene.target).expect(0).object()
        assert report["recommended"] is None
        for estimate in report["strategies"]:
            assert not estimate["feasible"]
            assert harmless(scene.says[0].removeprefix("process ")) in str(estimate["reasons"])


def test_a_survey_finds_the_use(cli: Cli, used: tuple[Used, ExitStack]) -> None:
    scene, _ = used
    findings = [
        finding
        for finding in survey_with(cli, scene.target).findings
        if finding.kind == "used-elsewhere"
    ]
    assert [finding.path for finding in findings] == [str(scene.where)]
    assert findings[0].severity is Severity.CRITICAL
    assert scene.says[0] in findings[0].meaning


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
