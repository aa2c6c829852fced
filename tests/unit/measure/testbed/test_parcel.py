"""Workloads travel whole, and are unpacked once."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.unit.measure.testbed.candidates import WORKLOAD

from intarsia.measure.measure_input import Workload
from intarsia.measure.testbed.parcel import PackedFolder, SharedFolder
from intarsia.measure.testbed.station_session import StationSession, StationSettings
from intarsia.measure.workload_folder import WorkloadFolder
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
