"""Processes that end with the one that started them, whatever happens to it."""

import functools
import os
import threading
import time


@functools.cache
def end_with_parent() -> None:
    """End this process once the one that started it is gone: nobody waits for its hours of work."""
    parent = os.getppid()

    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
