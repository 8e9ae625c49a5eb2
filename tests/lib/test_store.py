"""The store: addresses by content, all or nothing on disk, damage noticed."""

import errno
import os
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib import store
from lib.errors import BookError

ADDRESS, OTHER = store.key("p", {"trial": 0}), store.key("p", {"trial": 1})


@pytest.fixture(autouse=True)
def empty_store(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


def entries(folder):
    return sorted(folder.glob("*/*.task"))


def test_what_is_saved_is_loaded():
    arrays = {"x": np.arange(6.0).reshape(2, 3), "name": np.array("ridge"), "n": np.array(3)}
    store.save(ADDRESS, arrays)
    loaded = store.load(ADDRESS)
    assert loaded.keys() == arrays.keys()
    for name in arrays:
        np.testing.assert_array_equal(loaded[name], arrays[name])
    assert store.load(OTHER) is None


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers() | st.floats(allow_nan=False)))
def test_the_address_depends_on_every_argument_and_not_on_their_order(arguments):
    backwards = dict(reversed(arguments.items()))
    assert store.key("p", arguments) == store.key("p", backwards)
    assert store.key("p", {**arguments, "other name": 1}) != store.key("p", arguments)
    assert store.key("q", arguments) != store.key("p", arguments)


def test_the_address_depends_on_the_content_type_and_shape_of_arrays():
    x = np.arange(4.0)
    variants = [x, x + 1e-15, x.astype(np.float32), x.reshape(2, 2), np.array([0.0, 1.0, 2.0])]
    addresses = {store.key("p", {"x": v}) for v in variants}
    assert len(addresses) == len(variants)
    assert store.key("p", {"x": x.copy()}) in addresses
    strided = np.arange(8.0)[::2] / 2
    assert store.key("p", {"x": strided}) == store.key("p", {"x": x})


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "text"])
def test_a_damaged_entry_is_reported_and_counts_as_absent(empty_store, damage):
    store.save(ADDRESS, {"x": np.arange(1000.0)})
    (path,) = entries(empty_store)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle] ^= 0xFF
    damaged = {
        "flip": bytes(content),
        "truncate": path.read_bytes()[:middle],
        "empty": b"",
        "text": b"not an archive",
    }
    path.write_bytes(damaged[damage])
    with pytest.warns(UserWarning, match="is damaged and is computed again"):
        assert store.load(ADDRESS) is None


def test_every_single_flipped_byte_is_noticed_or_harmless(empty_store):
    x = np.arange(5.0)
    store.save(ADDRESS, {"x": x})
    (path,) = entries(empty_store)
    content = path.read_bytes()
    for position in range(0, len(content), 7):
        flipped = bytes([content[position] ^ 1])
        path.write_bytes(content[:position] + flipped + content[position + 1 :])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = store.load(ADDRESS)
        assert loaded is None or np.array_equal(loaded["x"], x)


def test_objects_are_never_pickled():
    with pytest.raises(BookError, match="not \\['x'\\]"):
        store.save(ADDRESS, {"x": np.array([{}, None])})
    with pytest.raises(BookError, match="set cannot be an argument"):
        store.key("p", {"x": {1, 2}})


def test_a_full_disk_says_so_and_leaves_nothing_behind(empty_store, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BookError, match="disk is full"):
        store.save(ADDRESS, {"x": np.arange(3)})
    assert [p for p in empty_store.rglob("*") if p.is_file()] == []


def test_what_a_killed_run_was_writing_is_removed_once_nobody_can_be(empty_store):
    store.save(ADDRESS, {"x": np.arange(3)})
    store.describe("p")
    (folder,) = empty_store.iterdir()
    left = [folder / f".0123.task.abcd_{n}ef" for n in range(3)]
    for path in left:
        path.write_bytes(b"half")
    for path in [*left[:2], *folder.glob("[0-9a-f]*.task"), folder / "program.txt"]:
        os.utime(path, (1e9, 1e9))
    store.describe("p")
    assert [path for path in left if path.exists()] == left[2:], "one may be written right now"
    assert store.load(ADDRESS) is not None
    assert store.program(folder.name) == "p"


def test_results_of_a_program_lie_in_one_folder_and_others_elsewhere(empty_store):
    for program, trial in (("p", 0), ("p", 1), ("q", 0)):
        store.save(store.key(program, {"trial": trial}), {"x": np.arange(trial)})
    counts = {path.name: len(list(path.iterdir())) for path in empty_store.iterdir()}
    assert counts == {store.group("p"): 2, store.group("q"): 1}


def test_the_cost_is_kept_beside_the_result_and_is_no_part_of_it(empty_store):
    x = np.arange(3.0)
    store.save(ADDRESS, {"seconds": x}, store.Cost(seconds=2.5, work=1000.0))
    store.save(OTHER, {"seconds": x})
    assert store.cost(ADDRESS) == store.Cost(2.5, 1000.0)
    assert store.cost(OTHER) is None
    assert store.cost(store.key("p", {"trial": 2})) is None
    for address in (ADDRESS, OTHER):
        assert list(store.load(address)) == ["seconds"]
        np.testing.assert_array_equal(store.load(address)["seconds"], x)
