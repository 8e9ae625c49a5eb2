"""Machine code on disk, sealed by a checksum.

numba loads what it finds beside a source file. A flipped byte there is an error in every later run,
a crash of the process, or, worst, another number. Sealed code that does not fit its checksum counts
as absent and is compiled again.
"""

import hashlib
import pickle

from numba.core.caching import IndexDataCacheFile

_SEAL = hashlib.sha256().digest_size


class _Damaged(Exception):
    """A file does not hold what was written to it."""


class _Sealed(IndexDataCacheFile):
    """numba's index and data files with a checksum before what they hold."""

    def load(self, key):
        try:
            return super().load(key)
        except _Damaged:
            return None

    def _dump(self, obj):
        content = super()._dump(obj)
        return hashlib.sha256(content).digest() + content

    def _load_index(self):
        try:
            with open(self._index_path, "rb") as file:
                version, content = pickle.load(file), file.read()
            stamp, overloads = pickle.loads(_opened(content))
        except Exception:  # damage can surface as almost any error of pickle
            return {}
        return overloads if (version, stamp) == (self._version, self._source_stamp) else {}

    def _load_data(self, name):
        with open(self._data_path(name), "rb") as file:
            return pickle.loads(_opened(file.read()))


def _opened(content: bytes) -> bytes:
    seal, inner = content[:_SEAL], content[_SEAL:]
    if hashlib.sha256(inner).digest() != seal:
        raise _Damaged
    return inner


def sealed(dispatcher):
    """Let a function compiled with `cache=True` keep its machine code under a checksum."""
    dispatcher._cache._cache_file.__class__ = _Sealed
    return dispatcher
