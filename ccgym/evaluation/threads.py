"""Do work in threads that Ctrl-C ends.

Threads instead of processes: nothing is pickled, and users of the library need no ``if __name__`` guard. Most of the
work is in the simulator and in numpy, and both release the interpreter's lock.
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
"""Seconds between checks for signals while waiting for threads."""


def in_threads(
    work: Callable[[_Item], _Result], items: Iterable[_Item], jobs: int | None, halt: Callable[[], object]
) -> Generator[tuple[_Item, Future[_Result]], None, None]:
    """Do work for each item, and yield each item with its result, in the order in which they end.

    If the loop may end early, close the generator: this ends the work.

    Args:
        work: The function to call in another thread.
        items: The arguments of the calls.
        jobs: Number of items at the same time; by default one per processor.
        halt: Called if Ctrl-C or an error ends the loop: must make running work stop soon.
    """
    with ThreadPoolExecutor(max_workers=jobs or os.cpu_count() or 1, thread_name_prefix="run") as pool:
        try:
            futures = {pool.submit(work, item): item for item in items}
            ended: SimpleQueue[Future[_Result]] = SimpleQueue()
            for future in futures:
                future.add_done_callback(ended.put)
            while futures:
                try:
                    # Ctrl-C reaches only this thread, and only between waits: wait for short times.
                    future = ended.get(timeout=TURN_S)
                except Empty:
                    continue
                yield futures.pop(future), future
        except BaseException:  # GeneratorExit, too: the caller was interrupted
            halt()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
