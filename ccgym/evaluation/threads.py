"""Work in threads that Ctrl-C ends.

Threads, not processes: nothing is pickled, a library user needs no ``if __name__`` guard, and what is not in the
simulator, which releases the interpreter's lock, is numpy, which does so where it matters.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

TURN_S: Final = 0.5
"""Seconds after which a wait for threads looks whether there was a signal."""


def in_threads(
    work: Callable[[_Item], _Result], items: Iterable[_Item], jobs: int | None, halt: Callable[[], object]
) -> Generator[tuple[_Item, Future[_Result]], None, None]:
    """Do some work for each item, and give each with what came of it, in the order in which they end.

    Close the generator where the loop may end early: that ends the work.

    Args:
        work: What is done, in another thread.
        items: What it is done with.
        jobs: How many at a time; as many as there are processors by default.
        halt: Called where Ctrl-C or an error ends the loop: makes work that is under way give up soon.
    """
    with ThreadPoolExecutor(max_workers=jobs or os.cpu_count() or 1, thread_name_prefix="run") as pool:
        try:
            futures = {pool.submit(work, item): item for item in items}
            ended: SimpleQueue[Future[_Result]] = SimpleQueue()
            for future in futures:
                future.add_done_callback(ended.put)
            while futures:
                try:
                    # Waiting in short turns lets Ctrl-C through; it reaches this thread alone.
                    future = ended.get(timeout=TURN_S)
                except Empty:
                    continue
                yield futures.pop(future), future
        except BaseException:  # GeneratorExit, too: the caller was interrupted
            halt()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
