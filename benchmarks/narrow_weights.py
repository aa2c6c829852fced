"""Products with weights of 4 and 8 bits by native kernels, against ONNX Runtime and OpenVINO.

Usage: python -m benchmarks.narrow_weights [--rounds 30] [--threads 1] [--only TEXT] [--avx2] [--markdown]

Each row is a chain of products with different weights that together exceed the last-level cache, as in a
language model that decodes: the time of one row is that of reading the weights once. Native and ONNX Runtime
run `com.microsoft::MatMulNBits`, the latter with float32 activations (accuracy level 0) and with those that
it rounds to 8 bits (level 4); OpenVINO runs the same numbers behind DequantizeLinear by blocks, in float32.
Contenders take turns call by call in one process; ratios are of the best times, with those of the first
quartiles in brackets. `of bandwidth` is the rate at which native reads words, scales and zero points over
that of `measured_bandwidth`, the better of one before and one after each chain; with many rows the rate of
arithmetic counts. The error is that of native against ONNX Runtime at level 0, relative to the largest
result.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from benchmarks.integer_layers import best_times, ratio_text
from benchmarks.native_kernels import Array, Run, format_table
from onnx import TensorProto, helper, numpy_helper
from tests.emulated_cpus import CPUS

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.native.bandwidth import measured_bandwidth
from intarsia.native.machine.isa import Isa
from intarsia.passes import partition_whole
from intarsia.target import Target

CHAIN_BYTES = 96 << 20
"""Bytes of the weights of a chain: three times the last-level cache of the machine of the first figures."""
HEADER = (
    "chain",
    "us a product",
    "GFLOP/s",
    "of bandwidth",
    "onnxruntime",
    "onnxruntime, level 4",
    "openvino",
    "error",
)


@dataclass(frozen=True, slots=True)
class Chain:
    """Products of (rows, width) by matrices (width, inner) and (inner, width) in turn.

    Attributes:
        rows: Rows of the left matrix.
        width: Columns of the input.
        inner: Columns of every second result.
        bits: Bits of a number.
        block: Numbers of a block.
        has_zeros: Whether each block has its zero point.
    """

    rows: int
    width: int
    inner: int
    bits: int = 4
    block: int = 32
    has_zeros: bool = False

    @property
    def title(self) -> str:
        """Name in the table."""
        zeros = " zero points" if self.has_zeros else ""
        return f"{self.bits} bits {self.rows}x{self.width}x{self.inner} block {self.block}{zeros}"

    @property
    def product_bytes(self) -> int:
        """Bytes that native reads for one product."""
        numbers = self.width * self.inner
        return numbers * self.bits // 8 + numbers // self.block * (8 if self.has_zeros else 4)

    @property
    def count(self) -> int:
        """Number of products: an even one."""
        return max(2, -(-CHAIN_BYTES // self.product_bytes // 2) * 2)

    def shapes(self) -> list[tuple[int, int]]:
        """Return the shapes (K, N) of the matrices."""
        return [(self.width, self.inner), (self.inner, self.width)] * (self.count // 2)

    def numbers(self, position: int) -> tuple[npt.NDArray[np.uint8], Array, npt.NDArray[np.uint8]]:
        """Return the numbers (N, K), scales (N, blocks) and zero points of a matrix."""
        depth, columns = self.shapes()[position]
        random = np.random.default_rng(position)
        numbers = random.integers(0, 1 << self.bits, (columns, depth), np.uint8)
        # Results have the size of inputs, so that no product of the chain overflows.
        size = (1 << self.bits) / np.sqrt(12) * np.sqrt(depth)
        scale = (random.uniform(0.5, 1.5, (columns, depth // self.block)) / size).astype(np.float32)
        middle = 1 << (self.bits - 1)
        zero = random.integers(middle - 1, middle + 2, scale.shape, np.uint8)
        return numbers, scale, zero if self.has_zeros else np.full_like(zero, middle)

    def by_bits(self, level: int) -> onnx.ModelProto:
        """Return the chain as MatMulNBits with an accuracy level."""
        nodes, constants = [], list[onnx.TensorProto]()
        for position, (depth, columns) in enumerate(self.shapes()):
            numbers, scale, zero = self.numbers(position)
            packed = _packed(numbers, self.bits).reshape(columns, -1, self.block * self.bits // 8)
            parts = {"b": packed, "s": scale.reshape(-1)}
            if self.has_zeros:
                parts["z"] = _packed(zero, self.bits).reshape(-1)
            constants += [numpy_helper.from_array(part, f"{name}{position}") for name, part in parts.items()]
            read = [f"x{position}", *(f"{name}{position}" for name in parts)]
            attrs = {"K": depth, "N": columns, "bits": self.bits, "block_size": self.block}
            node = helper.make_node(
                "MatMulNBits", read, [f"x{position + 1}"], domain="com.microsoft", **attrs
            )
            node.attribute.append(helper.make_attribute("accuracy_level", level))
            nodes.append(node)
        return self._model(nodes, constants)

    def by_dequantising(self) -> onnx.ModelProto:
        """Return the chain as MatMul behind DequantizeLinear."""
        kind = TensorProto.UINT4 if self.bits == 4 else TensorProto.UINT8
        nodes, constants = [], list[onnx.TensorProto]()
        for position in range(self.count):
            numbers, scale, zero = self.numbers(position)
            for name, array in (("b", numbers.T), ("z", zero.T)):
                raw = _packed(np.ascontiguousarray(array).reshape(1, -1), self.bits).tobytes()
                constants.append(helper.make_tensor(f"{name}{position}", kind, array.shape, raw, raw=True))
            constants.append(numpy_helper.from_array(np.ascontiguousarray(scale.T), f"s{position}"))
            read = [f"{name}{position}" for name in "bsz"]
            nodes += [
                helper.make_node("DequantizeLinear", read, [f"w{position}"], axis=0, block_size=self.block),
                helper.make_node("MatMul", [f"x{position}", f"w{position}"], [f"x{position + 1}"]),
            ]
        return self._model(nodes, constants)

    def _model(self, nodes: list[onnx.NodeProto], constants: list[onnx.TensorProto]) -> onnx.ModelProto:
        ends = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, (self.rows, self.width))
            for name in ("x0", f"x{self.count}")
        ]
        graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], constants)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return model


CHAINS = (
    Chain(1, 4096, 4096),
    Chain(1, 4096, 4096, block=128),
    Chain(1, 4096, 4096, has_zeros=True),
    Chain(1, 4096, 4096, bits=8),
    Chain(1, 2048, 8192),
    Chain(1, 1024, 3072, block=64),
    Chain(4, 4096, 4096),
    Chain(64, 1024, 3072),
    Chain(256, 1024, 3072, block=128),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="only chains with this in their names")
    parser.add_argument("--avx2", action="store_true", help="no more than AVX2 for native and OpenVINO")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    if given.avx2:
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"  # before OpenVINO is loaded
        narrow = CPUS["znver3"]
        Isa.host = classmethod(lambda _: narrow)  # type: ignore[method-assign, assignment]
    chosen = [chain for chain in CHAINS if given.only in chain.title]
    print(format_table(HEADER, [_measured(chain, given) for chain in chosen], given.markdown))


def _measured(chain: Chain, given: argparse.Namespace) -> tuple[str, ...]:
    """Time a chain with all contenders, and return the row of the table."""
    before = measured_bandwidth(Isa.host(), given.threads)
    x = np.random.default_rng(1).standard_normal((chain.rows, chain.width)).astype(np.float32)
    model = chain.by_bits(0)
    executable = build(
        partition_whole(from_onnx(model), Target.for_toolchain("native", threads=given.threads))
    )
    result = np.asarray(executable(x))
    exact = _onnxruntime(model, x, given.threads)
    runs: dict[str, Run] = {
        "native": lambda: executable(x),
        "onnxruntime": exact,
        "level 4": _onnxruntime(chain.by_bits(4), x, given.threads),
        "openvino": _openvino(chain.by_dequantising(), x, given.threads),
    }
    times = best_times(runs, given.rounds)
    bandwidth = max(before, measured_bandwidth(Isa.host(), given.threads))

    reference = exact()
    error = np.abs(result - reference).max() / np.abs(reference).max()
    seconds = times["native"][0] / chain.count
    work = 2 * chain.rows * chain.width * chain.inner / seconds / 1e9
    share = chain.product_bytes / seconds / bandwidth
    return (
        chain.title,
        f"{1e6 * seconds:.0f}",
        f"{work:.0f}",
        f"{share:.2f} of {bandwidth / 1e9:.1f} GB/s",
        *(ratio_text(times, name) for name in ("onnxruntime", "level 4", "openvino")),
        f"{error:.1e}",
    )


def _onnxruntime(model: onnx.ModelProto, x: Array, threads: int) -> Callable[[], Array]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session: Any = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, {"x0": x})[0]


def _openvino(model: onnx.ModelProto, x: Array, threads: int) -> Run:
    """Compile a model in float32, as the others compute."""
    import openvino

    settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    core = openvino.Core()
    request = core.compile_model(core.read_model(model.SerializeToString()), "CPU", settings)
    infer = request.create_infer_request()
    return lambda: infer.infer([x])


def _packed(numbers: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.uint8]:
    """Return rows of numbers as bytes, the lowest bits first; an odd row gets one number more."""
    if bits == 8:
        return numbers
    even = np.pad(numbers, ((0, 0), (0, numbers.shape[1] % 2)))
    packed: npt.NDArray[np.uint8] = even[:, ::2] | (even[:, 1::2] << np.uint8(4))
    return packed


if __name__ == "__main__":
    main()
