"""The words for one directory and for several, in text and in JSON."""

import pytest

from tests.unit.test_job_store import plan
from tui_fs.job.store import JobFolder, create, load_plan, read_json, write_json
from tui_fs.model.codec import encode
from tui_fs.model.errors import BadInput
from tui_fs.model.events import JobFinished, event_from_json
from tui_fs.model.outcome import Outcome
from tui_fs.model.paths import PathStr
from tui_fs.model.target import (
    command_lines,
    common_directory,
    in_words,
    target_fields,
)


@pytest.mark.parametrize(
    ("paths", "common", "words"),
    [
        (("/srv/a",), "/srv/a", "/srv/a"),
        (("/srv/a\n",), "/srv/a\n", "/srv/a\\n"),
        (("/srv/a", "/srv/ab"), "/srv", "2 directories in /srv"),
        (("/srv/a/x", "/srv/b/x", "/srv/a/y"), "/srv", "3 directories in /srv"),
        (("/a", "/b"), "/", "2 directories in /"),
        (("/s\udcff/a", "/s\udcff/b"), "/s\udcff", "2 directories in /s\\xff"),
    ],
)
def test_words(paths: tuple[str, ...], common: str, words: str) -> None:
    assert common_directory(paths) == common
    assert in_words(paths) == words


def test_each_target_says_whether_it_is_gone() -> None:
    states: list[dict[str, bool | None]] = [{"gone": True}, {"gone": False}, {"gone": None}]
    fields = target_fields(("/srv/a", "/srv/\udcff", "/srv/c"), states)
    assert fields["target"] == "/srv"
    assert fields["targets"] == [
        {"path": "/srv/a", "gone": True},
        {"path": "/srv/\\xff", "path_b64": "L3Nydi//", "gone": False},
        {"path": "/srv/c", "gone": None},
    ]
    assert "gone" not in target_fields(("/srv/a",))["targets"][0]


def test_a_command_line_of_many_shows_a_few() -> None:
    many = tuple(f"/srv/{number}" for number in range(300))
    lines = command_lines([("/bin/find", *many, "-xdev"), ("/bin/rm", "--", "/srv/0", "/srv/1")])
    assert lines == [
        "/bin/find /srv/0 /srv/1 … (and 298 more) -xdev",
        "/bin/rm -- /srv/0 /srv/1",
    ]
    inside = command_lines([("/bin/find", ".")], many[:5])
    assert inside[:3] == ["cd /srv/0", "cd /srv/1", "cd /srv/2"]
    assert inside[3:] == ["cd … (and 2 more)", "/bin/find ."]


def test_programs_of_the_one_file_are_shown_without_its_temporary_directory() -> None:
    tree = "/dev/shm/tui-fs-0123456789ab-89abcdef"
    like = f"/srv{tree}/bin"
    child = f"{tree}/lib/python3.11/site-packages/tui_fs/strategies/rmtree_child.py"
    assert command_lines(
        [
            (f"{tree}/bin/python3", "-I", "-S", child, "--", like),
            (f"{tree}/bin/tui-fs-engine", "delete", "--pin", "1:2:3", "--", like),
            ("/usr/bin/rmdir", "--", like),
            ("/usr/bin/find", like, "-delete"),
        ]
    ) == [
        f"python3 -I -S rmtree_child.py -- {like}",
        f"tui-fs-engine delete --pin 1:2:3 -- {like}",
        f"/usr/bin/rmdir -- {like}",
        f"/usr/bin/find {like} -delete",
    ]


def test_a_command_of_a_damaged_journal_may_have_no_words() -> None:
    assert command_lines([()]) == [""]


def test_a_plan_for_nothing_is_none() -> None:
    folder: JobFolder = create(plan())
    assert load_plan(folder) == plan()
    value = read_json(folder.plan)
    for targets in ([], [{**value["targets"][0], "path": "srv", "path_b64": "c3J2"}]):
        write_json(folder.plan, {**value, "targets": targets})
        with pytest.raises(BadInput):
            load_plan(folder)


def test_damaged_bytes_are_said() -> None:
    for damage in (["*"], "L3Nydg==", [1]):
        value = encode(
            JobFinished(1.0, Outcome.DONE, "", 1.0, 0, 0, True, 1, None, (PathStr("/a"),))
        )
        with pytest.raises(BadInput):
            event_from_json({**value, "left_b64": damage})
