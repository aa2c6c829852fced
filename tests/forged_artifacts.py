"""Artifacts of real toolchains in folders, changed by somebody who knows how to give them right digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import intarsia as ia
from intarsia.passes import partition_whole
from intarsia.runtime.artifact_format import ArtifactFormat
from intarsia.runtime.kernel import Array
from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.target import Target

X = np.random.default_rng(0).standard_normal((4, 32)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((32, 32)).astype(np.float32)
RIGHT = np.maximum(X @ W, 0) @ W

BLOB = "kernels/00.blob"


def save(folder: Path, toolchain: str) -> Path:
    """An artifact of one kernel: two products and a ReLU."""
    model = helper.make_model(
        helper.make_graph(
            [
                helper.make_node("MatMul", ["x", "w"], ["a"]),
                helper.make_node("Relu", ["a"], ["b"]),
                helper.make_node("MatMul", ["b", "w"], ["y"]),
            ],
            "main",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, X.shape)],
            [numpy_helper.from_array(W, "w")],
        ),
        opset_imports=[helper.make_opsetid("", 20)],
    )
    options = {} if toolchain == "reference" else {"threads": 1}
    target = Target.for_toolchain(toolchain).with_options(**options)
    ia.build(partition_whole(ia.from_onnx(model), target)).save(folder, format=ArtifactFormat.DIRECTORY)
    return folder


def is_right(result: Array) -> bool:
    """Whether a result is that of the artifact as it was saved."""
    return bool(np.allclose(result, RIGHT, rtol=1e-3, atol=1e-3))


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest without its digest."""
    record: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    del record["digest"]
    return record


def seal(folder: Path, record: dict[str, Any]) -> None:
    """Write a manifest with the right digest."""
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps({**record, "digest": digest}))


def replace_file(folder: Path, name: str, content: bytes) -> None:
    """Give a file another content, and the manifest its digest."""
    (folder / name).write_bytes(content)
    record = manifest_of(folder)
    record["files"][name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    seal(folder, record)


def blob_parts(blob: bytes) -> tuple[dict[str, Any], bytes]:
    """The record of a native blob, and what stands behind it."""
    end = blob.index(b"\n") + 1
    return json.loads(blob[:end]), blob[end + -end % ALIGNMENT :]


def joined_blob(head: dict[str, Any], body: bytes) -> bytes:
    """A native blob of a record and what stands behind it."""
    line = json.dumps(head).encode() + b"\n"
    return line + b"\0" * (-len(line) % ALIGNMENT) + body


def change_blob(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the record of the native blob, and seal the artifact."""
    head, body = blob_parts((folder / BLOB).read_bytes())
    change(head)
    replace_file(folder, BLOB, joined_blob(head, body))


def replace_kernels(folder: Path, object_code: bytes) -> None:
    """Put other object code in place of every native kernel, and seal the artifact."""
    head, body = blob_parts((folder / BLOB).read_bytes())
    for kernel in head["kernels"]:
        kernel[0] = [len(body), len(object_code)]
    replace_file(folder, BLOB, joined_blob(head, body + object_code))
