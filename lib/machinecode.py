"""Machine code: on disk it is sealed by a checksum, and who is only called inside has one door.

numba loads what it finds beside a source file. A flipped byte there is an error in every later run,
a crash of the process, or, worst, another number. Sealed code that does not fit its checksum counts
as absent and is compiled again.

A function that compiled code calls needs no entrance for Python: unpacking a problem or state of a
dozen arrays there is a fifth of what it takes to compile a policy. Nor does it need machine code of
its own, since its callers link its optimised code into theirs: a tenth more. Neither changes a
number.
"""

import hashlib
import pickle

import llvmlite.binding
from numba.core.caching import IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

_ENVIRONMENT = "_ZN08NumbaEnv"
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


class _Ingredient(JITCodeLibrary):
    """Optimised code for callers to link into theirs; it never becomes machine code alone."""

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._place_environments()
        self._finalized = True

    def _place_environments(self):
        # numba writes the address of a function's environment (what its exceptions need) to a
        # global of this name as soon as the function is compiled; callers' code finds it there.
        names = (each.name for each in self._final_module.global_variables)
        places = [
            f'@"{name}" = common global ptr null' for name in names if name.startswith(_ENVIRONMENT)
        ]
        self._codegen._add_module(llvmlite.binding.parse_assembly("\n".join(places)))
        self._codegen._engine.finalize_object()

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0  # as numba says it of functions without an entrance


class Inside(Compiler):
    """numba's compiler for functions that only compiled code calls."""

    def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):
        library = _Ingredient(targetctx.codegen(), "ingredient")
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)


class _TwoDoors(CPUDispatcher):
    """A compiled function that compiled callers enter by a twin without an entrance for Python."""

    def get_call_template(self, args, kws):
        return self.inside.get_call_template(args, kws)

    def get_overload(self, sig):
        return self.inside.get_overload(sig)

    @property
    def is_compiling(self):  # by this numba knows a function that calls itself
        return super().is_compiling or self.inside.is_compiling


def two_doors(dispatcher, inside):
    """Return a compiled function whose compiled callers take `inside`, the same without wrappers.

    Whichever is called is compiled; a function called from both sides is compiled twice.
    """
    dispatcher.__class__, dispatcher.inside = _TwoDoors, inside
    return dispatcher
