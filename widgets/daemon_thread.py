"""Asking in a thread what may never be answered."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


async def in_daemon_thread(ask: Callable[[], Answer]) -> Answer:
    """Return what a function returns, or raise what it raises, from a thread of its own.

    Unlike ``asyncio.to_thread``: a thread that never returns, because it asks a dead network
    mount, does not keep the program from ending.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Answer] = loop.create_future()

    def tell(take: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the program has ended: nobody waits
            loop.call_soon_threadsafe(lambda: None if answer.done() else take())

    def work() -> None:
        try:
            result = ask()
        except BaseException as error:  # noqa: BLE001  whoever waits gets it
            problem = error
            tell(lambda: answer.set_exception(problem))
        else:
            tell(lambda: answer.set_result(result))

    threading.Thread(target=work, daemon=True).start()
    return await answer
