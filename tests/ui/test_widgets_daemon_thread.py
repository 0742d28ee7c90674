"""Asking in a thread what may never be answered."""

import asyncio
import subprocess
import sys
from threading import Event

import pytest

from tests.conftest import DEADLINE_S
from tui_fs.widgets.daemon_thread import in_daemon_thread

NEVER_ANSWERED = """
import asyncio, sys, threading
from tui_fs.widgets.daemon_thread import in_daemon_thread
from tui_fs.widgets.path_input import DirectorySuggester

def ask(_=None):
    threading.Event().wait()

async def main():
    way = {
        "itself": in_daemon_thread(ask),
        "completion": DirectorySuggester(ask).get_suggestion("/"),
    }
    never = asyncio.ensure_future(way.pop(sys.argv[1]))
    next(iter(way.values())).close()
    await asyncio.sleep(0.1)
    never.cancel()

asyncio.run(main())
"""


def test_what_is_answered_comes_back() -> None:
    def refuse() -> int:
        raise PermissionError("no")

    async def act() -> None:
        assert await in_daemon_thread(lambda: 7) == 7
        with pytest.raises(PermissionError, match="no"):
            await in_daemon_thread(refuse)

    asyncio.run(act())


def test_an_unneeded_answer_harms_nothing() -> None:
    answers = Event()

    async def act() -> list[object]:
        problems: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, problem: problems.append(problem)
        )
        asked = asyncio.ensure_future(in_daemon_thread(answers.wait))
        await asyncio.sleep(0.05)
        asked.cancel()
        answers.set()
        await asyncio.sleep(0.1)
        assert asked.cancelled()
        return problems

    assert asyncio.run(act()) == []


@pytest.mark.parametrize("who", ["itself", "completion"])
def test_a_program_ends_although_it_was_never_answered(who: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", NEVER_ANSWERED, who],
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
