"""The kinds of input that are fuzzed: seeds, and the reader that is given their mutations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx.parser

import intarsia as ia
from intarsia.autoschedule.measuring.record_file import load_records
from intarsia.collage.placement.plan import Plan
from intarsia.ir.parser import parse_module
from intarsia.measure.database import Database, RunRecord
from intarsia.native.object_code import llvm_loader
from intarsia.native.object_code.object_code import load_object_code
from intarsia.runtime.artifact_format import MANIFEST, ArtifactFormat
from intarsia.runtime.artifact_load import load
from intarsia.runtime.plan import TensorInfo
from intarsia.serving.protocol_tensors import read_tensor
from intarsia.support.errors import ArtifactError
from intarsia.target import Host
from intarsia.toolchain.native.blob import read_blob
from intarsia.transform import read_passes

_WEIGHTS: Final = ", ".join(map(str, range(32)))
_TEXT: Final = f"""<ir_version: 10, opset_import: ["" : 20]>
g (float[n,8] x) => (float[n,4] y) <float[8,4] w = {{{_WEIGHTS}}}> {{
  a = MatMul (x, w) y = Softmax <axis = 1> (a)
}}"""
_PASSES: Final = (
    b"FoldConstant, TuneRewrite, TunePlacement{eval_passes=[TuneLayout, TuneSchedule]}",
    b"default_heuristic",
    b"FuseOps{max_depth=8}, ConvertLayout{layout=NHWC}, SimplifyExpr",
)
_RECORD: Final = (
    rb'{"i": [["[\"matmul\", 16, 16, 16]", "llvm -keys=cpu -mcpu=skylake-avx512", '
    rb'[4, 64, 64, 0, 0, 0, 0, 0], "", 1, []], [[], [["SP", 2, 0, 16, [4, 2, 1], 1], '
    rb'["SP", 2, 4, 16, [2, 2, 2], 1], ["RE", 2, [0, 4, 1, 5, 2, 6, 8, 3, 7]], ["AN", 2, 8, 2]]]], '
    rb'"r": [[0.000127], 0, 0.341, 1604489452], "v": "v0.6"}'
)
_REQUEST: Final = (
    b'{"inputs": [{"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [1, 2.5, -3, 4e3]}]}'
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of input.

    Attributes:
        seeds: Valid inputs.
        read: Reader, which returns or raises an IntarsiaError.
    """

    seeds: Sequence[bytes]
    read: Callable[[bytes], object]


def make_kinds(folder: Path) -> Mapping[str, Kind]:
    """Return the kinds by name.

    Args:
        folder: Folder for the files of readers that take paths.
    """
    model = onnx.parser.parse_model(_TEXT)
    fixed = onnx.parser.parse_model(_TEXT.replace("n,", "3,"))
    native = ia.build(ia.from_onnx(fixed), "cpu -toolchain=native -threads=1")
    slow = ia.build(ia.from_onnx(fixed), "cpu -toolchain=reference")
    artifact, directory = folder / "a.intarsia", folder / "d.intarsia"
    slow.save(artifact)
    slow.save(directory, format=ArtifactFormat.DIRECTORY)
    (kernel,) = native.kernels
    constants = native.provenance.program_constants
    blob, weights = kernel.blob(), kernel.source.weights
    assert blob is not None
    region = read_blob(blob, weights)
    path = folder / "input"
    return {
        "models": Kind([model.SerializeToString(), fixed.SerializeToString()], ia.from_onnx),
        "artifacts": Kind([artifact.read_bytes()], lambda data: _load(_written(path, data))),
        "manifests": Kind([_unsealed(directory)], lambda data: _load_sealed(directory, data)),
        "blobs": Kind([blob], lambda data: read_blob(data, weights)),
        "objects": Kind([item.object_code for item in region.kernels], _load_object),
        "pipelines": Kind(_PASSES, lambda data: read_passes(_text(data))),
        "programs": Kind([native.program.encode()], lambda data: parse_module(_text(data), constants)),
        "plans": Kind([_plan(folder)], lambda data: Plan.read(_written(path, data))),
        "records": Kind([_RECORD], lambda data: load_records(_written(path, data))),
        "databases": Kind([_database(folder)], lambda data: _read_database(_written(path, data))),
        "requests": Kind([_REQUEST], _read_request),
    }


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _load(path: Path) -> None:
    load(path).close()


def _unsealed(directory: Path) -> bytes:
    record = json.loads((directory / MANIFEST).read_bytes())
    del record["digest"]
    return json.dumps(record).encode()


def _load_sealed(directory: Path, data: bytes) -> None:
    """Load an artifact with a manifest that has the right digest."""
    with suppress(ValueError, RecursionError):  # no JSON: the reader gets it as it is
        record = json.loads(data)
        if isinstance(record, dict):
            digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
            data = json.dumps({**record, "digest": digest}).encode()
    (directory / MANIFEST).write_bytes(data)
    _load(directory)


def _load_object(data: bytes) -> None:
    load_object_code(data).unload()


def without_llvm() -> None:
    """Refuse object code that only LLVM can load: LLVM's own loader ends the process for some garbage."""

    def refuse(_data: bytes, _address: object, refusal: ArtifactError) -> Any:
        raise refusal

    llvm_loader.load_with_llvm = refuse  # type: ignore[assignment]  # it never returns


def _plan(folder: Path) -> bytes:
    path = folder / "seed.plan"
    model = onnx.parser.parse_model(_TEXT.replace("n,", "3,"))
    ia.tune(ia.from_onnx(model), budget="0.2s", targets=["onnxruntime"], plan=path)
    return path.read_bytes()


def _database(folder: Path) -> bytes:
    path = folder / "seed.sqlite"
    with Database.open(path) as database:
        database.add_workload("workload", "name", "program")
        database.add_host(Host.detect())
        database.keep_run(RunRecord("key", "workload", Host.detect().digest, 1.0, "{}"))
    return path.read_bytes()


def _read_database(path: Path) -> None:
    with Database.open(path) as database:
        database.statistics()
        database.runs()
        database.summaries()
        database.records_of("workload")


def _read_request(data: bytes) -> None:
    """Read the tensors of a request as the adapter of KServe does, which has parsed the JSON."""
    info = TensorInfo("x", "float32", ("n", 2))
    try:
        request = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(request, dict) or not isinstance(tensors := request.get("inputs"), list):
        return
    for tensor in tensors:
        if isinstance(tensor, dict) and isinstance(tensor.get("shape"), list):
            array = read_tensor(info, tensor.get("datatype", ""), tensor["shape"], tensor.get("data"))
            assert array.dtype == np.float32
            assert list(array.shape) == tensor["shape"]
