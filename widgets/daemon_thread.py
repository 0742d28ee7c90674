"""Run in a daemon thread a call that may never return."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


async def in_daemon_thread(ask: Callable[[], Answer]) -> Answer:
    """Call a function in a daemon thread; return its result or raise its error.

    Unlike with ``asyncio.to_thread``, a call that never returns, such as one on a dead network
    mount, does not keep the program from exiting.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Answer] = loop.create_future()

    def resolve(set_answer: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: no task waits any more
            loop.call_soon_threadsafe(lambda: None if answer.done() else set_answer())

    def work() -> None:
        try:
            result = ask()
        except BaseException as error:  # noqa: BLE001  the waiting task raises it
            problem = error
            resolve(lambda: answer.set_exception(problem))
        else:
            resolve(lambda: answer.set_result(result))

    threading.Thread(target=work, daemon=True).start()
    return await answer
