"""Sentences are wrapped at words on a terminal, and on no other output."""

import sys

import pytest

from tui_fs.cli.output import note, print_json, print_json_line, print_question, print_text
from tui_fs.cli.wrapping import wrapped
from tui_fs.model.errors import cannot_examine
from tui_fs.model.paths import displayable

WIDTH = 60
REFUSAL = f"tui-fs: {cannot_examine('/srv/data', PermissionError(13, ''))}"


def test_a_refusal_is_wrapped_at_words() -> None:
    assert wrapped(REFUSAL, WIDTH).split("\n") == [
        "tui-fs: /srv/data cannot be examined: permission denied. Run",
        "  tui-fs as root, or as a user with search permission for",
        "  all directories on that path.",
    ]


@pytest.mark.parametrize("width", range(1, 200))
def test_no_word_is_changed_and_no_line_is_too_long(width: int) -> None:
    lines = wrapped(REFUSAL, width).split("\n")
    assert " ".join(line.strip() for line in lines) == REFUSAL
    assert max(map(len, lines)) <= max(width, 20)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "    memory: it keeps the names of a directory in memory until it has read all",
            [
                "    memory: it keeps the names of a directory in memory",
                "      until it has read all",
            ],
        ),
        (
            "    one fact about this strategy, which takes more than one line",
            ["    one fact about this strategy, which takes more than one", "    line"],
        ),
        (
            "- A note on the run, which is longer than the line in which it begins.",
            ["- A note on the run, which is longer than the line in which", "  it begins."],
        ),
        (
            "yes  landlock  the kernel keeps the tools inside the targets of the job",
            ["yes  landlock  the kernel keeps the tools inside the targets", f"{'':15}of the job"],
        ),
    ],
)
def test_an_item_continues_under_its_text(text: str, lines: list[str]) -> None:
    assert wrapped(text, WIDTH).split("\n") == lines


@pytest.mark.parametrize(
    "kept",
    [
        "tui-fs attach 5be501",
        "chattr -i -a /srv/data",
        "mount -t proc proc /proc",
        "'btrfs subvolume list -s MOUNTPOINT'",
        "/srv/a-long-directory/with-hyphens/in-all-of-its/names-that-are/longer-than/one-line",
    ],
)
@pytest.mark.parametrize("before", range(0, 60, 7))
def test_a_command_and_a_path_stay_in_one_line(kept: str, before: int) -> None:
    text = f"tui-fs: {'x ' * before}and what to do now is this: {kept}"
    assert kept in wrapped(text, WIDTH).split("\n")[-1]
    assert kept in wrapped(f"{text}. Then look again.", WIDTH)


def test_wide_letters_take_two_cells() -> None:
    path = "/srv/" + "日本" * 10
    assert wrapped(f"tui-fs: {path} cannot be examined.", WIDTH).split("\n") == [
        f"tui-fs: {path} cannot",  # 60 cells
        "  be examined.",
    ]


def test_a_figure_stays_beside_its_name() -> None:
    line = "cpu  kernel 0.0 s · user 0.0 s · waited 0.0 s · peak memory 2.1 MiB"
    assert wrapped(line, WIDTH).split("\n") == [
        "cpu  kernel 0.0 s · user 0.0 s · waited 0.0 s ·",
        "     peak memory 2.1 MiB",
    ]


def test_a_path_with_spaces_that_was_given_stays_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = "/srv/a directory with spaces"
    monkeypatch.setattr(sys, "argv", ["tui-fs", "survey", path])
    for before in range(60):
        assert displayable(path) in wrapped(f"{'x ' * before}{path} is not there.", WIDTH)


@pytest.mark.parametrize(
    "line",
    [
        "$ /usr/bin/find /srv/data -xdev -depth -mindepth 1 -type d -delete",
        "5be501  done  rm  1,000  2026-11-29 04:30  /srv/a directory with spaces",
        "To delete it:   tui-fs delete --directory-id 0123456789abcdef -- /srv/data",
        "a-strategy-in-a-column-that-is-long  1,000,000  1,000,000  recommended here",
    ],
)
def test_what_is_copied_or_has_no_room_is_left_as_it_is(line: str) -> None:
    assert wrapped(line, WIDTH) == line


def test_only_a_terminal_gets_wrapped_lines_and_json_never_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_text(REFUSAL)
    note(REFUSAL)
    assert capsys.readouterr() == (f"{REFUSAL}\n", f"{REFUSAL}\n")
    monkeypatch.setattr("tui_fs.cli.output._columns", lambda _: WIDTH)
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    print_text(REFUSAL)
    note(REFUSAL)
    print_question(f"{REFUSAL}:")
    lines = wrapped(REFUSAL, WIDTH)
    assert capsys.readouterr() == (f"{lines}\n", f"{lines}\n{lines}: ")
    print_json([REFUSAL])
    print_json_line({"problem": REFUSAL})
    assert [line for line in capsys.readouterr().out.split("\n") if REFUSAL in line] == [
        f'  "{REFUSAL}"',
        f'{{"schema":1,"problem":"{REFUSAL}"}}',
    ]
