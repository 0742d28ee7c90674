"""Nothing of the environment or of a tool's output reaches the terminal as it is."""

import json
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.trees import many_directories

HOSTILE = "\x1b]0;owned\x07\x1b[2J\nroot ok \u202egnp.exe\u2066\x9b31m\x7f"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose every value is hostile, with tools that answer so."""
    tools = tmp_path / f"bin-{HOSTILE}"
    tools.mkdir()
    for name in ("rm", "find", "xargs", "rsync", "strace", "bpftrace", "rmdir"):
        tool = tools / name
        tool.write_text(
            "#!/bin/sh\nprintf '%s (GNU x) \\033]0;owned\\007\\342\\200\\256 9.1\\n' rm\n"
        )
        tool.chmod(0o755)
    state = tmp_path / f"state-{HOSTILE}"
    state.mkdir(mode=0o700)
    config = tmp_path / f"config-{HOSTILE}"
    (config / "tui-fs").mkdir(parents=True)
    (config / "tui-fs" / "policy.toml").write_text("read_only = false")
    return {
        "PATH": f"{tools}:/usr/bin:/bin",
        "HOME": str(state),
        "XDG_STATE_HOME": str(state),
        "XDG_CONFIG_HOME": str(config),
        "TERM": HOSTILE,
        "SSH_CONNECTION": HOSTILE,
        "SUDO_USER": HOSTILE,
        "LOGNAME": HOSTILE,
        "USER": HOSTILE,
        "LANG": "C.UTF-8",
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ("doctor",),
        ("doctor", "--json"),
        ("jobs",),
        ("attach", HOSTILE),
        ("pause", HOSTILE),
        ("rate", HOSTILE, HOSTILE),
        ("aside", "--undo", HOSTILE),
        ("aside", "--list"),
        ("lab", "show", HOSTILE),
        ("lab", "run", HOSTILE),
        ("lab", "runs"),
        ("survey", HOSTILE),
        ("survey", "--import", HOSTILE),
        ("survey", "--format", HOSTILE, "x"),
        ("survey", "--export", HOSTILE, "target"),
        ("delete", "--strategy", HOSTILE, "x"),
        ("delete", "--strategy", "rm", "--older-than", HOSTILE, "x"),
        ("delete", "--strategy", "rm", "--dry-run", "target"),
        ("estimate", "--no-measuring", "target"),
        (f"--{HOSTILE}",),
    ],
    ids=lambda arguments: arguments[0][:8],
)
def test_what_is_printed_can_be_shown(
    cli: Cli, tmp_path: Path, environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    many_directories(tmp_path / "target", 1, 1)
    finished = cli.run(*arguments, cwd=tmp_path, environment=environment)
    assert "Traceback" not in finished.stderr
    for line in (finished.stdout.decode() + finished.stderr).split("\n"):
        assert line.isprintable(), ascii(line)
    if "--json" in arguments:
        report = json.loads(finished.stdout)
        assert report["terminal"]["term"] == HOSTILE


def test_a_job_audits_and_reports_printable_text(
    cli: Cli, tmp_path: Path, environment: dict[str, str]
) -> None:
    many_directories(tmp_path / "target", 1, 1)
    for name in ("PATH", "HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        del environment[name]
    words = ("delete", "--strategy", "rmtree", "--yes", tmp_path / "target")
    finished = cli.run(*words, environment=environment).expect(0)
    listed = cli.run("jobs", environment=environment).expect(0)
    attached = cli.run("attach", cli.only_job(), environment=environment).expect(0)
    for process in (finished, listed, attached):
        for line in (process.stdout.decode() + process.stderr).split("\n"):
            assert line.isprintable(), ascii(line)
    lines = [event["line"] for event in cli.journal(cli.only_job()) if event["type"] == "Audited"]
    assert lines
    assert all(line.isprintable() for line in lines)
