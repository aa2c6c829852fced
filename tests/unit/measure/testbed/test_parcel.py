"""Workloads travel whole, and are unpacked once."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.ir_programs import var
from tests.unit.measure.testbed.candidates import WORKLOAD

from intarsia.ir import Constant, Function, IRModule, TensorType
from intarsia.measure.arrays.constant_store import ConstantStore
from intarsia.measure.measure_input import Workload
from intarsia.measure.testbed.parcel import PackedFolder, SharedFolder, join_parcel
from intarsia.measure.testbed.station_session import StationSession, StationSettings
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.op import call
from intarsia.target import Host


@pytest.fixture
def folder(tmp_path: Path) -> WorkloadFolder:
    (tmp_path / "here").mkdir()
    return WorkloadFolder.write(WORKLOAD, tmp_path / "here")


@pytest.fixture
def there(tmp_path: Path) -> Path:
    (tmp_path / "there").mkdir()
    return tmp_path / "there"


def test_a_shared_folder_stays_where_it_is(folder: WorkloadFolder, there: Path) -> None:
    assert SharedFolder(folder.path).open(there).path == folder.path
    assert list(there.iterdir()) == []


def test_a_packed_folder_comes_out_as_it_went_in(folder: WorkloadFolder, there: Path) -> None:
    (folder.path / "wrong").mkdir()  # notes of those that measure it stay
    opened = pickle.loads(pickle.dumps(PackedFolder.pack(folder))).open(there)
    assert opened.path == there / folder.path.name
    assert Workload(opened.module()).digest == WORKLOAD.digest
    assert opened.gate().check(folder.gate().expected).passed
    assert opened.inputs()["x"].tolist() == folder.inputs()["x"].tolist()
    assert not (opened.path / "wrong").exists()


def test_arrays_are_pickled_without_a_copy(folder: WorkloadFolder) -> None:
    apart: list[pickle.PickleBuffer] = []
    within = pickle.dumps(PackedFolder.pack(folder), protocol=5, buffer_callback=apart.append)
    assert len(apart) == len(list(folder.path.iterdir()))
    assert len(within) < 2_000


def test_what_is_there_is_not_unpacked_again(folder: WorkloadFolder, there: Path) -> None:
    parcel = PackedFolder.pack(folder)
    first = parcel.open(there).path.stat().st_ino
    assert parcel.open(there).path.stat().st_ino == first
    assert [path.name for path in there.iterdir()] == [folder.path.name]


def test_threads_of_a_station_unpack_once(folder: WorkloadFolder, there: Path) -> None:
    session = StationSession(StationSettings("s", Host.detect()), there)
    parcel = PackedFolder.pack(folder)
    with ThreadPoolExecutor(8) as executor:
        paths = list(executor.map(lambda _: session.folder(parcel).path, range(32)))
    assert len(set(paths)) == 1
    assert len({path.stat().st_ino for path in paths}) == 1
    assert session.unpacked(folder.path.name) == paths[0]
    assert session.unpacked("another") is None
    session.close()
    assert list(there.iterdir()) == []


LARGE = Constant(np.arange(100_000, dtype=np.float32))


def with_weights(store: ConstantStore, scale: float) -> WorkloadFolder:
    """A workload with a large constant that others share, and a large one that no other has."""
    x = var("x", TensorType.of(np.zeros(100_000, np.float32)))
    apart = Constant(np.full(100_000, scale, np.float32))
    module = IRModule.from_expr(Function((x,), call("Add", call("Add", x, LARGE), apart)))
    return WorkloadFolder.write(Workload(module, is_checked=False), store.path.parent, store=store)


def test_large_constants_travel_apart_and_are_written_once(tmp_path: Path, there: Path) -> None:
    store = ConstantStore(tmp_path / "store")
    store.path.mkdir()
    first, second = with_weights(store, 1.0), with_weights(store, 2.0)
    packed = [PackedFolder.pack(folder) for folder in (first, second)]
    digests = [{constant.digest for constant in parcel.constants} for parcel in packed]
    assert [len(each) for each in digests] == [2, 2]
    assert len(digests[0] & digests[1]) == 1
    for parcel in packed:
        bare = replace(parcel, constants=())
        assert len(pickle.dumps(bare)) < 2_000_000  # input and reference result, no weights
        opened = join_parcel(pickle.loads(pickle.dumps([bare, *parcel.constants]))).open(there)
        folder = next(item for item in (first, second) if item.path.name == opened.path.name)
        assert Workload(opened.module()).digest == Workload(folder.module()).digest
        assert all(path.is_relative_to(there) for path in opened.stored_constants().values())
    assert {path.name for path in (there / "constants").iterdir()} == digests[0] | digests[1]
