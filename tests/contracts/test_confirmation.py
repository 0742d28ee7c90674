"""The confirmation on the terminal, and events meanwhile."""

import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.contracts.asking import Terminal
from tests.trees import Sentinel, manifest, many_directories
from tests.waiting_process import waiting_process


def _swap_for_a_directory(target: Path, sentinel: Sentinel) -> None:
    sentinel.root.rename(target)


def _swap_for_a_symlink(target: Path, sentinel: Sentinel) -> None:
    target.symlink_to(sentinel.root)


@pytest.mark.parametrize("swap", (_swap_for_a_directory, _swap_for_a_symlink))
def test_refuses_when_the_target_is_swapped_while_it_asks(
    cli: Cli, tmpfs: Path, swap: Callable[[Path, Sentinel], None]
) -> None:
    sentinel = Sentinel(tmpfs)
    before = manifest(sentinel.root)
    target = tmpfs / "target"
    many_directories(target, 2, 2)
    with Terminal(cli, "delete", "--strategy", "rm", str(target)) as terminal:
        terminal.wait_for(b"yes")
        target.rename(tmpfs / "moved-away")
        swap(target, sentinel)
        terminal.answer(b"yes\n")
        code = terminal.wait()
    assert code == 3, terminal.seen
    assert b"Traceback" not in terminal.seen
    assert manifest(target.resolve()) == before
    assert len(manifest(tmpfs / "moved-away")) == 7


@pytest.mark.parametrize("answer", (b"\n", b"n\n", b"no\n", b"\x04"))
def test_the_default_answer_is_no(cli: Cli, tmpfs: Path, answer: bytes) -> None:
    target = tmpfs / "target"
    many_directories(target, 2, 2)
    before = manifest(target)
    with Terminal(cli, "delete", "--strategy", "rm", str(target)) as terminal:
        terminal.wait_for(b"yes")
        terminal.answer(answer)
        code = terminal.wait()
    assert code != 0
    assert b"Traceback" not in terminal.seen
    assert manifest(target) == before
    assert cli.jobs() == []


UNTYPABLE = {
    "decomposed": "cafe\u0301",
    "control character": "a\x1bb",
    "not UTF-8": "a\udcffb",
    "backslash": "a\\b",
    "space at the end": "a ",
    "no-break space": "a\u00a0b",
}


@pytest.mark.parametrize("kind", UNTYPABLE)
def test_untypable_name_is_confirmed_by_a_plain_word(cli: Cli, tmpfs: Path, kind: str) -> None:
    target = tmpfs / UNTYPABLE[kind]
    (target / ".git").mkdir(parents=True)  # a project is confirmed by typing
    with Terminal(cli, "delete", "--strategy", "rm", str(target)) as terminal:
        terminal.wait_for(b"type the word delete")
        terminal.answer(b"delete\n")
        code = terminal.wait()
    assert code == 0, terminal.seen
    assert not target.exists()


LOOK_ALIKE = {
    "decomposed": ("cafe\u0301", "caf\u00e9"),
    "space at the end": ("a ", "a"),
    "two spaces": ("a  b", "a b"),
    "blank character": ("\u2800", "\u180b"),
}


@pytest.mark.parametrize("kind", LOOK_ALIKE)
def test_the_question_distinguishes_names_that_look_alike(cli: Cli, tmpfs: Path, kind: str) -> None:
    # Two directories whose names differ in what one does not see
    asked = []
    for name in LOOK_ALIKE[kind]:
        target = tmpfs / name
        target.mkdir()
        with Terminal(cli, "delete", "--strategy", "rm", str(target)) as terminal:
            terminal.wait_for(b"Type yes: ")
            terminal.answer(b"no\n")
            assert terminal.wait() == 3
        lines = terminal.seen.decode().splitlines()
        (line,) = [line for line in lines if ": 0 files" in line]
        asked.append(unicodedata.normalize("NFC", line.partition(": 0 files")[0]))
    assert asked[0].rstrip() != asked[1].rstrip()


def test_the_question_names_who_works_in_the_target(cli: Cli, tmpfs: Path) -> None:
    target = tmpfs / "target"
    many_directories(target, 2, 2)
    with waiting_process(
        ["sh", "-c", "echo ready; read -r end"], cwd=target, start_new_session=True
    ) as process:
        with Terminal(cli, "delete", "--strategy", "rm", str(target)) as terminal:
            terminal.wait_for(b"Type yes: ")
            terminal.answer(b"no\n")
            assert terminal.wait() == 3
        dry = cli.run("delete", "--strategy", "rm", "--dry-run", str(target)).expect(0)
    said = f"1 process uses this tree: sh ({process.pid})."
    assert said.encode() in terminal.seen
    assert said.encode() in dry.stdout


def test_typable_name_of_another_script_is_typed(cli: Cli, tmpfs: Path) -> None:
    target = tmpfs / "caf\u00e9 \u65e5\u672c"
    (target / ".git").mkdir(parents=True)
    with Terminal(cli, "delete", "--strategy", "rm", str(target)) as terminal:
        terminal.wait_for(b"type its name")
        terminal.answer(b"delete\n")
        code = terminal.wait()
    assert code == 3, terminal.seen
    assert target.exists()
