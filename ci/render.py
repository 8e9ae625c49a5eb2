"""Jupyter Book in a process of its own, which holds a lock and ends with the one that started it.

Killing a build leaves its Sphinx behind for a moment. It must not write among the pages of the next
build, which therefore waits for the lock.
"""

import sys

from filelock import FileLock, Timeout

from lib.lifetime import end_with_parent

PATIENCE = 30.0  # seconds; who lost its parent ends after one


def main(lock: str, arguments: list[str]) -> None:
    """Render a book with the arguments of the `jupyter-book` command."""
    end_with_parent()
    try:
        with FileLock(lock, timeout=PATIENCE):
            from jupyter_book.cli.main import main as jupyter_book

            jupyter_book(arguments)
    except Timeout:
        sys.exit("Error: another process is rendering this book; wait for it to end")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
