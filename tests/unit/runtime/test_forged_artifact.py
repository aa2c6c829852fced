"""Artifacts of real toolchains, changed under right digests: an error for people or a run, nothing else."""

from __future__ import annotations

import copy
import random
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.forged_artifacts import (
    BLOB,
    X,
    blob_parts,
    change_blob,
    is_right,
    joined_blob,
    manifest_of,
    replace_file,
    save,
    seal,
)

from intarsia.runtime.artifact_load import load
from intarsia.runtime.bounded_json import MOST_VALUES, parse_json
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import ArtifactError, IntarsiaError
from intarsia.toolchain.native.blob import read_blob
from intarsia.toolchain.protocol import Available

VALUES: tuple[object, ...] = (
    *(None, True, False, -1, 0, 1, 7, 99, 10**9, 2**31, 2**45, 2**62, 2**70, 1.5, -0.5),
    *("", "x", "a", "float32", "string", "bool", "cpu", "main"),
    *([], [0], [[]], [-1], [10**9], [2**40, 2**40], [0, 2**62, 2**62], {}, {"a": 1}),
)
Change = Callable[[dict[str, Any]], object]


def paths(value: object, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    return [path for key, part in inside for path in ((*above, key), *paths(part, (*above, key)))]


def mutated(draw: random.Random, record: dict[str, Any]) -> dict[str, Any]:
    """A copy in which one value is another one."""
    changed = copy.deepcopy(record)
    *above, last = draw.choice(paths(record))
    inner: Any = changed
    for key in above:
        inner = inner[key]
    inner[last] = copy.deepcopy(draw.choice(VALUES))
    return changed


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("native") / "m", "native")


@pytest.fixture
def folder(native: Path, tmp_path: Path) -> Path:
    return shutil.copytree(native, tmp_path / "m")


@pytest.mark.slow
@pytest.mark.parametrize("toolchain", ["onnxruntime", "openvino", "reference", "torch"])
def test_any_value_of_a_manifest_replaced(toolchain: str, tmp_path: Path) -> None:
    """Native has the same manifests; its own records are in its blob."""
    if not isinstance(TOOLCHAINS[toolchain]().availability(), Available):
        pytest.skip(f"{toolchain} is not here")
    folder, draw, refused = save(tmp_path / "m", toolchain), random.Random(toolchain), 0
    record = manifest_of(folder)
    for _ in range(60):
        seal(folder, mutated(draw, record))
        try:
            load(folder, trusted=False)(X)
        except IntarsiaError:
            refused += 1
    assert refused > 20


def test_any_value_of_a_native_blob_replaced(native: Path) -> None:
    head, body = blob_parts((native / BLOB).read_bytes())
    weights = {name: np.zeros((32, 32), np.float32) for name in manifest_of(native)["kernels"][0]["weights"]}
    draw, refused = random.Random(1), 0
    for _ in range(400):
        try:
            read_blob(joined_blob(mutated(draw, head), body), weights)
        except ArtifactError:
            refused += 1
    assert refused > 300


@pytest.mark.parametrize(
    "change",
    [
        lambda head: head.update(arena_bytes=2**45),
        lambda head: head.update(threads="a"),
        lambda head: head.update(threads=10**9),
        lambda head: head["calls"][0].__setitem__(0, 99),
        lambda head: head["params"][0].__setitem__(1, [10**9, 10**9]),
        lambda head: head["kernels"][0].__setitem__(3, 2**40),
        lambda head: head["kernels"][0][2][0].__setitem__(1, [10**9]),
        lambda head: head["kernels"].append(head["kernels"][0]),
    ],
)
def test_a_record_that_cannot_be_is_compiled_from_its_source(folder: Path, change: Change) -> None:
    change_blob(folder, change)
    blob = (folder / BLOB).read_bytes()
    with pytest.raises(ArtifactError):
        read_blob(blob, {name: np.zeros((32, 32), np.float32) for name in ("w", "c0", "constant_0")})
    assert is_right(load(folder)(X))


def test_any_byte_of_a_blob_changed_does_not_matter_without_trust(folder: Path) -> None:
    draw, right = random.Random(2), (folder / BLOB).read_bytes()
    for _ in range(3):
        wrong = bytearray(right)
        for _ in range(20):
            wrong[draw.randrange(len(wrong))] = draw.randrange(256)
        replace_file(folder, BLOB, bytes(wrong))
        assert is_right(load(folder, trusted=False)(X))


def message(path: Path) -> str:
    with pytest.raises(ArtifactError) as caught:
        load(path, trusted=False)
    return str(caught.value).split("\n")[0]


@pytest.fixture
def forged(tmp_path: Path) -> Callable[[Change], Path]:
    def forge(change: Change) -> Path:
        folder = save(tmp_path / "m", "reference")
        record = manifest_of(folder)
        change(record)
        seal(folder, record)
        return folder

    return forge


def test_a_shape_that_no_array_has(forged: Callable[[Change], Path]) -> None:
    path = forged(lambda record: record["constants"][0].update(shape=[2**40, 2**40]))
    assert message(path) == (
        f"{path} is damaged: manifest.json.constants[0].shape is [1099511627776, 1099511627776], expected a "
        "shape that an array can have"
    )
    path = forged(lambda record: record["constants"][0].update(shape=[-1]))
    assert "constants[0].shape[0] is -1, expected a whole number, 0 or more" in message(path)
    path = forged(lambda record: record["plan"]["slot_types"][0].update(shape=[-2]))
    assert "shape[0] is -2, expected a whole number, 0 or more" in message(path)


def test_branches_that_share_lists_are_not_written_out(forged: Callable[[Change], Path]) -> None:
    def share(record: dict[str, Any]) -> None:
        block = record["plan"]["blocks"]["main"]
        ends = [
            {
                "branch": 0,
                "true": {"list": number + 1, "results": []},
                "false": {"list": number + 1, "results": []},
                "outputs": [],
            }
            for number in range(60)
        ]
        block["step_lists"] = [[end] for end in ends] + [[]]

    assert message(forged(share)).endswith("step_lists: two branches refer to one list")


def test_slots_that_take_all_memory(forged: Callable[[Change], Path]) -> None:
    path = forged(lambda record: record["plan"]["blocks"].update(
        f={"params": [], "constants": [], "step_lists": [[]], "results": [], "slots": 2**45}
    ))  # fmt: skip
    assert "it has 35184372088832 slots" in message(path)


def test_a_kernel_file_for_many_kernels(forged: Callable[[Change], Path]) -> None:
    path = forged(lambda record: record["kernels"].append(record["kernels"][0]))
    assert message(path) == f"{path} is damaged: two kernels have one file"


def test_json_of_too_many_values() -> None:
    with pytest.raises(ArtifactError, match=r"x has about \d+ values, expected at most"):
        parse_json(b"[" + b"[]," * MOST_VALUES + b"[]]", "x")


def test_a_local_header_that_contradicts_the_list_of_a_zip(tmp_path: Path) -> None:
    import intarsia as ia

    folder = save(tmp_path / "m", "reference")
    path = tmp_path / "zip"
    ia.load(folder).save(path)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("constants.safetensors").header_offset
    for offset, new in ((8, struct.pack("<H", 8)), (6, b"\x01")):
        path.write_bytes(data[: start + offset] + new + data[start + offset + len(new) :])
        assert message(path).startswith(f"{path} is damaged: cannot read constants.safetensors: ")
    path.write_bytes(data)
    assert is_right(load(path, trusted=False)(X))


def test_members_of_a_zip_that_overlap(tmp_path: Path) -> None:
    import intarsia as ia

    path = tmp_path / "zip"
    ia.load(save(tmp_path / "m", "reference")).save(path)
    data = path.read_bytes()
    with zipfile.ZipFile(path, "a") as archive:
        info = archive.getinfo("constants.safetensors")
        for number in range(9):
            twin = copy.copy(info)
            twin.filename = f"twin{number}"
            archive.filelist.append(twin)
        archive._didModify = True  # type: ignore[attr-defined]  # it writes its list anew
    assert len(path.read_bytes()) < 2 * len(data)
    assert "its files claim" in message(path)
