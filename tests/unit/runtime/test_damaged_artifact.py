"""Artifacts damaged at many seeded places: an error for people or the right result, never anything else."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fake_kernels import f32, fake, plan_of

from intarsia.runtime.artifact_format import ArtifactFormat
from intarsia.runtime.artifact_load import load
from intarsia.runtime.executable import Executable
from intarsia.runtime.plan import RunKernel
from intarsia.runtime.provenance import Provenance
from intarsia.runtime.self_test import SelfTest
from intarsia.support.errors import IntarsiaError

pytestmark = pytest.mark.usefixtures("fake_toolchain")

X = np.arange(4, dtype=np.float32)
Damage = Callable[[random.Random, bytes], bytes]


def flip_bit(draw: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def change_bytes(draw: random.Random, data: bytes) -> bytes:
    start = draw.randrange(len(data))
    return data[:start] + draw.randbytes(draw.randint(1, 16)) + data[start + draw.randint(0, 16) :]


def truncate(draw: random.Random, data: bytes) -> bytes:
    return data[: draw.randrange(len(data))]


def fill(draw: random.Random, data: bytes) -> bytes:
    """Ones or zeros over a few bytes: lengths and offsets become huge or nothing."""
    start, length = draw.randrange(len(data)), draw.randint(1, 8)
    return data[:start] + bytes([draw.choice([0, 255])]) * length + data[start + length :]


DAMAGES: tuple[Damage, ...] = (flip_bit, change_bytes, truncate, fill)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one artifact in both forms."""
    place = tmp_path_factory.mktemp("whole")
    a = f32("x", 4)
    kernels = [fake("weighted", {"weight": np.full(4, 3, np.float32)}, "compiled"), fake("add")]
    steps = [RunKernel(0, (0,), (1,)), RunKernel(1, (1, 2), (3,))]
    plan = plan_of(steps, [a], [3], [a] * 4, constants=[(2, 0)])
    exe = Executable(plan, kernels, [X], Provenance("def"), None, SelfTest((X,), (X * 4,)))
    exe.save(place / "zip")
    exe.save(place / "folder", format=ArtifactFormat.DIRECTORY)
    return place


def outcome(path: Path) -> str:
    """What comes of loading and running it: "right", or the type of the error."""
    try:
        found = load(path)
    except IntarsiaError as error:
        return type(error).__name__ if str(path) in str(error) else f"{error} (of which artifact?)"
    np.testing.assert_array_equal(found(X), X * 4)
    assert found.self_test() == 0
    return "right"


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("part", ["anywhere", "directory"])
def test_a_damaged_zip(whole: Path, tmp_path: Path, damage: Damage, part: str) -> None:
    draw, data, path = random.Random(1), (whole / "zip").read_bytes(), tmp_path / "zip"
    start = 0 if part == "anywhere" else data.index(b"PK\x01\x02")
    outcomes: Counter[str] = Counter()
    for _ in range(300):
        path.write_bytes(data[:start] + damage(draw, data[start:]))
        outcomes[outcome(path)] += 1
    assert outcomes.keys() <= {"right", "ArtifactError"}
    assert outcomes["ArtifactError"] > 100


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_of_a_folder(whole: Path, tmp_path: Path, damage: Damage) -> None:
    draw, path = random.Random(2), tmp_path / "folder"
    shutil.copytree(whole / "folder", path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    outcomes: Counter[str] = Counter()
    for number in range(210):
        file = files[number % len(files)]
        data = file.read_bytes()
        file.write_bytes(damage(draw, data))
        outcomes[outcome(path)] += 1
        file.write_bytes(data)
    assert outcomes.keys() <= {"right", "ArtifactError"}
    assert outcomes["ArtifactError"] > 150


VALUES: tuple[object, ...] = (
    None,
    True,
    -1,
    0,
    1,
    7,
    2**31,
    2**62,
    2**70,
    1.5,
    "",
    "x",
    "float32",
    "string",
    [],
    [0],
    [[]],
    {},
)


def places(value: object, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside of a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    for key, part in inside:
        yield (*above, key)
        yield from places(part, (*above, key))


@pytest.mark.slow
def test_a_forged_manifest(whole: Path, tmp_path: Path) -> None:
    """Any value replaced by any other, under a digest that is right."""
    draw, path = random.Random(3), tmp_path / "folder"
    shutil.copytree(whole / "folder", path)
    record = json.loads((path / "manifest.json").read_text())
    del record["digest"]
    outcomes: Counter[str] = Counter()
    for *above, last in places(record):
        for value in draw.sample(VALUES, 4):
            changed: Any = copy.deepcopy(record)
            inner = changed
            for key in above:
                inner = inner[key]
            inner[last] = value
            digest = hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()
            (path / "manifest.json").write_text(json.dumps({**changed, "digest": digest}))
            try:
                load(path)(X)
                outcomes["accepted"] += 1
            except IntarsiaError as error:
                outcomes[type(error).__name__] += 1
    assert outcomes["ArtifactError"] > 200
