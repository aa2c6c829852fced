"""The kinds of input that are fuzzed: seeds, and the reader that is given their mutations."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import onnx.parser

import intarsia as ia
from checks.fuzz.mutate import mutated
from checks.fuzz.mutate_model import model_mutated
from checks.fuzz.mutate_structure import (
    Mutation,
    by_half,
    cells_mutated,
    first_line_mutated,
    json_mutated,
    tokens_mutated,
)
from checks.fuzz.sealed_files import SealedFiles, content_mutated
from intarsia.autoschedule.measuring.record_file import load_records
from intarsia.collage.placement.plan import Plan
from intarsia.ir.dtype import DType
from intarsia.ir.parser import parse_module
from intarsia.measure.database import Database, Measurement, MeasureRecord, RunRecord
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.native.object_code import llvm_loader
from intarsia.native.object_code.object_code import load_object_code
from intarsia.runtime.artifact_format import MANIFEST, ArtifactFormat
from intarsia.runtime.artifact_load import load
from intarsia.runtime.plan import TensorInfo
from intarsia.serving.protocol_tensors import read_tensor
from intarsia.support.errors import ArtifactError
from intarsia.target import Host, Target
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
    b"\n"  # without it a damaged record is the torn end of a file, and none is read
)
_REQUESTS: Final = (
    b'{"inputs": [{"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [1, 2.5, -3, 4e3]}]}',
    b'{"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "raw": "0000803f00000040"}]}',
    b'{"inputs": [{"name": "i", "shape": [2, 1], "datatype": "INT8", "data": [[-128], [127]]},'
    b' {"name": "h", "shape": [1], "datatype": "FP16", "raw": "003c"},'
    b' {"name": "t", "shape": [1, 1], "datatype": "BOOL", "data": [true]}]}',
)
_INPUTS: Final = {
    info.name: info
    for info in (
        TensorInfo("x", "float32", ("n", 2)),
        TensorInfo("i", "int8", ("n", 1)),
        TensorInfo("h", "float16", ("n",)),
        TensorInfo("t", "bool", (1, 1)),
    )
}
_TARGETS: Final = (
    b"cpu -toolchain=native -threads=4 -mcpu=znver4",
    b"cuda -toolchain=onnxruntime -threads=1",
)


_EMPTY: Final = "empty.sqlite"
"""Name of an empty database."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of input.

    Attributes:
        seeds: Valid inputs.
        read: Reader, which returns or raises an IntarsiaError.
        mutate: Function that changes the seeds.
    """

    seeds: Sequence[bytes]
    read: Callable[[bytes], object]
    mutate: Mutation = mutated


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
    database, lines = _database(folder)
    values, tokens = by_half(json_mutated), by_half(tokens_mutated)
    sealed = SealedFiles.of(native, folder / "n.intarsia")
    seeds = [model.SerializeToString(), fixed.SerializeToString()]
    return {
        "models": Kind(seeds, ia.from_onnx, by_half(model_mutated)),
        "artifacts": Kind([artifact.read_bytes()], lambda data: _load(_written(path, data))),
        "manifests": Kind([_unsealed(directory)], lambda data: _load_sealed(directory, data), values),
        "contents": Kind(sealed.seeds, sealed.load, content_mutated),
        "blobs": Kind([blob], lambda data: read_blob(data, weights), by_half(first_line_mutated)),
        "objects": Kind([item.object_code for item in region.kernels], _load_object),
        "pipelines": Kind(_PASSES, lambda data: read_passes(_text(data)), tokens),
        "targets": Kind(_TARGETS, lambda data: Target(_text(data)), tokens),
        "programs": Kind(
            [native.program.encode()], lambda data: parse_module(_text(data), constants), tokens
        ),
        "plans": Kind([_plan(folder)], lambda data: Plan.read(_written(path, data)), values),
        "records": Kind([_RECORD], lambda data: load_records(_written(path, data)), values),
        "databases": Kind(
            [database], lambda data: _read_database(_written(path, data)), by_half(cells_mutated)
        ),
        "lines": Kind([lines], lambda data: _import_lines(folder, _written(path, data)), values),
        "requests": Kind(_REQUESTS, _read_request, values),
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


def _database(folder: Path) -> tuple[bytes, bytes]:
    """Return a database with records, and its lines."""
    path, host = folder / "seed.sqlite", Host.detect()
    with Database.open(path) as database:
        database.add_workload("workload", "name", "program")
        database.add_host(host)
        database.keep_run(RunRecord("key", "workload", host.digest, 1.0, "{}"))
        for number, error in enumerate((MeasureError.OK, MeasureError.CRASH)):
            costs = (1e-3, 2e-3) if error is MeasureError.OK else ()
            result = MeasureResult(costs, error, "message", 1.5, 1.76e9, 1e-6)
            trace = json.dumps([["TuneLayout", number]])
            record = ("workload", "cpu -toolchain=native", host.digest, "program", trace)
            database.commit(MeasureRecord(*record, (Measurement(result),)))
        database.export_lines(folder / "seed.jsonl")
    with Database.open(folder / _EMPTY):
        pass
    return path.read_bytes(), (folder / "seed.jsonl").read_bytes()


def _read_database(path: Path) -> None:
    with Database.open(path) as database:
        database.statistics()
        database.runs()
        for summary in database.summaries():
            database.host(summary.host)
            database.program(summary.workload)
        database.records_of("workload")


def _import_lines(folder: Path, lines: Path) -> None:
    """Import an export into an empty database."""
    path = folder / "imported.sqlite"
    path.write_bytes((folder / _EMPTY).read_bytes())
    with Database.open(path) as database:
        database.import_lines(lines)
        database.statistics()


def _read_request(data: bytes) -> None:
    """Read the tensors of a request as the adapter of KServe does, which has parsed the JSON."""
    try:
        request = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(request, dict) or not isinstance(tensors := request.get("inputs"), list):
        return
    for tensor in tensors:
        if not isinstance(tensor, dict) or not isinstance(tensor.get("shape"), list):
            continue
        name, raw = tensor.get("name"), tensor.get("raw")
        info = _INPUTS.get(name) if isinstance(name, str) else None
        if info is None:
            continue
        # Binary data follows the JSON of a request; here it stands in it, in hexadecimal digits.
        content: Any = raw.encode("utf-8", "replace") if isinstance(raw, str) else tensor.get("data")
        if isinstance(raw, str) and re.fullmatch("([0-9a-f]{2})*", raw):
            content = bytes.fromhex(raw)
        array = read_tensor(info, tensor.get("datatype", ""), tensor["shape"], content)
        assert DType.of(array).value == info.dtype
        assert list(array.shape) == tensor["shape"]
