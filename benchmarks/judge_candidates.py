"""Candidates for the judge: correct ones, which must pass, and wrong ones, which must be caught.

Candidates of a model are engines, and toolchains that wrongly keep state between calls. Candidates of small
programs compute with NumPy: correctly by another algorithm, or with a defect that real engines have had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from intarsia.build import build
from intarsia.ir import (
    Call,
    Constant,
    DType,
    Expr,
    Function,
    IRModule,
    Op,
    TensorType,
    Tuple,
    Var,
    post_order,
)
from intarsia.measure.judge.examination import examine, examine_buffers, examine_calls
from intarsia.measure.judge.gate_report import GateReport
from intarsia.measure.judge.trials import Trial
from intarsia.measure.whole_run import run_arrays
from intarsia.op import call, tuple_get
from intarsia.passes import partition_whole
from intarsia.runtime.executable import Executable
from intarsia.support.errors import IntarsiaError
from intarsia.target import Target

Array = npt.NDArray[Any]
Inputs = Mapping[str, Array]
Compute = Callable[[Inputs], Sequence[Array]]

ENGINES: dict[str, Target] = {
    "onnx.reference": Target.for_toolchain("reference"),
    "onnxruntime, optimised": Target.for_toolchain("onnxruntime"),
    "OpenVINO": Target.for_toolchain("openvino"),
    "native": Target.for_toolchain("native"),
}
WINOGRAD: dict[str, Target] = {
    f"native, Winograd F({tile}, 3) forced": Target.for_toolchain("native").with_options(
        convolutions=f"winograd_{tile}"
    )
    for tile in (2, 4)
}
MOST_COSTLY = 2e8
"""Largest number of multiply-adds of a model that onnx.reference, which is slow, is tried on."""

WIDTH, BOXES = 64, 24


@dataclass(frozen=True, slots=True)
class Finding:
    """Verdict of the judge on a candidate.

    Attributes:
        name: Name of the candidate.
        is_honest: Whether the candidate is correct and must pass.
        report: Report of the judge.
    """

    name: str
    is_honest: bool
    report: GateReport


def judge_engines(
    module: IRModule, trials: Sequence[Trial], engines: Mapping[str, Target]
) -> Iterator[Finding]:
    """Judge the first and the later calls of each engine that can compile a program."""
    for name, target in engines.items():
        try:
            executable = build(partition_whole(module, target))
        except IntarsiaError:
            continue
        with executable:
            for judge in (examine, examine_buffers):
                yield Finding(name, True, judge(executable, trials))


def engines_for(module: IRModule, multiply_adds: int) -> dict[str, Target]:
    """Return the engines that a program is tried on."""
    engines = {name: target for name, target in ENGINES.items() if name != "onnx.reference"}
    if multiply_adds <= MOST_COSTLY:
        engines = ENGINES
    calls = (expr for expr in post_order(module["main"]) if isinstance(expr, Call))
    has_convolution = any(isinstance(expr.op, Op) and expr.op.name == "Conv" for expr in calls)
    return {**engines, **WINOGRAD} if has_convolution else dict(engines)


def judge_stateful_toolchains(executable: Executable, trials: Sequence[Trial]) -> Iterator[Finding]:
    """Judge toolchains that compute the results of an engine, but keep state between calls."""
    for name, wrap in FORGETFUL.items():
        compute = wrap(lambda inputs: [np.array(array) for array in run_arrays(executable, inputs)])
        yield Finding(name, False, examine_calls(compute, trials))


def _stale(compute: Compute) -> Compute:
    first: list[Sequence[Array]] = []

    def run(inputs: Inputs) -> Sequence[Array]:
        if not first:
            first.append(compute(inputs))
        return [array.copy() for array in first[0]]

    return run


def _right_once(compute: Compute) -> Compute:
    seen: list[Inputs] = []

    def run(inputs: Inputs) -> Sequence[Array]:
        results = compute(seen[-1] if seen else inputs)
        seen.append(inputs)
        return results

    return run


def _same_memory(compute: Compute) -> Compute:
    memory: list[Array] = []

    def run(inputs: Inputs) -> Sequence[Array]:
        results = compute(inputs)
        if not memory or any(old.shape != new.shape for old, new in zip(memory, results, strict=True)):
            memory[:] = [array.copy() for array in results]
        for old, new in zip(memory, results, strict=True):
            np.copyto(old, new)
        return memory

    return run


def _unwritten(compute: Compute) -> Compute:
    before: list[Sequence[Array]] = []

    def run(inputs: Inputs) -> Sequence[Array]:
        results = compute(inputs)
        kept = [array.copy() for array in results]
        for old, new in zip(before[-1] if before else (), results, strict=False):
            if old.size == new.size:
                half = new.size // 2
                new.reshape(-1)[half:] = old.reshape(-1)[half:]
        before.append(kept)
        return results

    return run


FORGETFUL: dict[str, Callable[[Compute], Compute]] = {
    "its first result for ever": _stale,
    "right on its first call, then one call late": _right_once,
    "all results in the same memory": _same_memory,
    "second half not written": _unwritten,
}


@dataclass(frozen=True, slots=True)
class Program:
    """A small program with algorithms that compute it.

    Attributes:
        module: The program.
        honest: Correct algorithms by name.
        wrong: Algorithms with a defect, by name.
    """

    module: IRModule
    honest: Mapping[str, Compute]
    wrong: Mapping[str, Compute]


def judge_program(program: Program, trials: Sequence[Trial]) -> Iterator[Finding]:
    """Judge all algorithms of a small program."""
    for algorithms, is_honest in ((program.honest, True), (program.wrong, False)):
        for name, compute in algorithms.items():
            with np.errstate(all="ignore"):
                yield Finding(name, is_honest, examine_calls(compute, trials))


def _var(*shape: int, dtype: DType = DType.FLOAT32) -> Var:
    return Var("x", checked_type=TensorType(shape, dtype))


def _module(x: Var, *outputs: Expr) -> IRModule:
    return IRModule.from_expr(Function((x,), Tuple(outputs) if len(outputs) > 1 else outputs[0]))


def _numbers(values: Any, dtype: str = "float32") -> Constant:
    return Constant(np.asarray(values, dtype))


def _weights(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)


def product(seed: int) -> Program:
    """A product, summed in other orders and precisions."""
    weights = _weights(seed, 300, 40)

    def in_blocks(inputs: Inputs) -> Sequence[Array]:
        x = inputs["x"]
        result = np.zeros((len(x), 40), np.float32)
        for start in range(293, -7, -7):
            part = slice(max(0, start), start + 7)
            result += x[:, part] @ weights[part]
        return [result]

    x = _var(16, 300)
    return Program(
        _module(x, call("MatMul", x, _numbers(weights))),
        {
            "sums in another order": in_blocks,
            "sums in float64": lambda inputs: [
                (inputs["x"].astype(np.float64) @ weights.astype(np.float64)).astype(np.float32)
            ],
        },
        {
            "weights in float16": lambda inputs: [
                inputs["x"] @ weights.astype(np.float16).astype(np.float32)
            ],
            "the last term of sums left out": lambda inputs: [inputs["x"][:, :-1] @ weights[:-1]],
        },
    )


def softmax(_: int) -> Program:
    """A softmax; without subtraction of the maximum it overflows."""

    def without_maximum(inputs: Inputs) -> Sequence[Array]:
        powers = np.exp(inputs["x"])
        return [powers / powers.sum(-1, keepdims=True)]

    x = _var(8, 32)
    return Program(
        _module(x, call("Softmax", x, axis=-1)), {}, {"softmax without its maximum": without_maximum}
    )


def normalisation(_: int) -> Program:
    """A layer normalisation; the variance in one pass cancels beside an offset."""

    def normalised(x: Array, variance: Array, epsilon: float) -> Sequence[Array]:
        return [(x - x.mean(-1, keepdims=True)) / np.sqrt(variance + np.float32(epsilon))]

    def two_passes(x: Array) -> Array:
        return np.asarray(np.square(x - x.mean(-1, keepdims=True)).mean(-1, keepdims=True))

    def one_pass(x: Array) -> Array:
        return np.asarray(np.square(x).mean(-1, keepdims=True) - np.square(x.mean(-1, keepdims=True)))

    x = _var(21, 48)
    scale = _numbers(np.ones(48))
    return Program(
        _module(x, call("LayerNormalization", x, scale, axis=-1, epsilon=1e-5)),
        {"variance in float64": lambda i: [
            array.astype(np.float32) for array in normalised(
                i["x"].astype(np.float64), two_passes(i["x"].astype(np.float64)), 1e-5
            )
        ]},
        {
            "variance in one pass": lambda i: normalised(i["x"], one_pass(i["x"]), 1e-5),
            "normalisation without epsilon": lambda i: normalised(i["x"], two_passes(i["x"]), 0.0),
        },
    )  # fmt: skip


def wide_integers(_: int) -> Program:
    """A sum of 64-bit integers, which some engines compute in fewer bits."""

    def through(dtype: type) -> Compute:
        return lambda inputs: [(inputs["x"].astype(dtype) + dtype(3)).astype(np.int64)]

    x = _var(32, 16, dtype=DType.INT64)
    types = {"8 bits": np.int8, "32 bits": np.int32, "float32": np.float32, "float64": np.float64}
    return Program(
        _module(x, call("Add", x, _numbers(3, "int64"))),
        {},
        {f"int64 in {name}": through(dtype) for name, dtype in types.items()},
    )


def detections(seed: int) -> Program:
    """Boxes in pixels with their scores in the last column, as detectors give them."""
    boxes, scores = 40 * _weights(seed, WIDTH, 4), _weights(seed + 1, WIDTH, 1)

    def result(inputs: Inputs, factor: float) -> Sequence[Array]:
        x = inputs["x"]
        return [np.concatenate([x @ boxes, _sigmoid(x @ scores) * np.float32(factor)], -1)]

    x = _var(30, WIDTH)
    parts = call("MatMul", x, _numbers(boxes)), call("Sigmoid", call("MatMul", x, _numbers(scores)))
    return Program(
        _module(x, call("Concat", *parts, axis=-1)),
        {"sigmoid in float64": lambda inputs: result(inputs, 1.0)},
        {
            "scores zeroed beside large boxes": lambda inputs: result(inputs, 0.0),
            "scores x 1.001 beside large boxes": lambda inputs: result(inputs, 1.001),
        },
    )


def mask(seed: int) -> Program:
    """A mask of bytes."""
    weights = _weights(seed, WIDTH, 8)

    def result(inputs: Inputs) -> Array:
        return np.asarray(
            (inputs["x"].astype(np.float64) @ weights.astype(np.float64) > 0.5).astype(np.uint8)
        )

    x = _var(16, WIDTH)
    is_large = call("Greater", call("MatMul", x, _numbers(weights)), _numbers(0.5))
    return Program(
        _module(x, call("Cast", is_large, to=2)),
        {"comparisons in float64": lambda inputs: [result(inputs)]},
        {"a mask flipped": lambda inputs: [1 - result(inputs)]},
    )


def rounding(_: int) -> Program:
    """Floor of x / 3 * 3: rounding may move whole numbers to either side of the step."""

    def of_scaled(factor: float) -> Compute:
        return lambda inputs: [np.floor(inputs["x"] * np.float32(factor))]

    x = _var(16, WIDTH)
    computed = call("MatMul", call("Mul", x, _numbers(1 / 3)), _numbers(3 * np.eye(WIDTH)))
    return Program(
        _module(x, call("Floor", computed)),
        {
            "steps with arguments rounded up": of_scaled(1 + 2e-7),
            "steps with arguments rounded down": of_scaled(1 - 2e-7),
        },
        {"rounded instead of floored": lambda inputs: [np.rint(inputs["x"])]},
    )


def best_scores(seed: int) -> Program:
    """Top 8 of scores between 0 and 1, many of which are tied at 1.0."""
    weights = 40 * _weights(seed, WIDTH, 32)

    def picked(inputs: Inputs, last_first: bool) -> Sequence[Array]:
        scores = _sigmoid(inputs["x"] @ weights)
        positions = np.arange(scores.shape[-1]) * (-1 if last_first else 1)
        order = np.lexsort((np.broadcast_to(positions, scores.shape), -scores))[:, :8]
        return [np.take_along_axis(scores, order, -1), order.astype(np.int64)]

    def shifted(inputs: Inputs) -> Sequence[Array]:
        values, order = picked(inputs, False)
        return [values, (order + 1) % 32]

    x = _var(12, WIDTH)
    scores = call("Sigmoid", call("MatMul", x, _numbers(weights)))
    best = call("TopK", scores, _numbers([8], "int64"), outputs=2)
    return Program(
        _module(x, tuple_get(best, 0), tuple_get(best, 1)),
        {"TopK with ties in another order": lambda inputs: picked(inputs, True)},
        {"TopK with indices off by one": shifted},
    )


def suppression(seed: int) -> Program:
    """Non-maximum suppression of boxes that do not overlap, with many scores tied at 1.0."""
    weights = 40 * _weights(seed, WIDTH, BOXES)
    corners = np.stack([np.arange(BOXES) * 20.0, np.zeros(BOXES)], -1)
    boxes = np.concatenate([corners, corners + 10], -1).astype(np.float32)[None]

    def rows(inputs: Inputs, last_first: bool, threshold: float) -> Sequence[Array]:
        scores = _sigmoid(inputs["x"] @ weights)[0]
        positions = np.arange(BOXES) * (-1 if last_first else 1)
        order = [box for box in np.lexsort((positions, -scores)) if scores[box] > threshold]
        return [np.array([[0, 0, box] for box in order], np.int64).reshape(-1, 3)]

    x = _var(1, WIDTH)
    scores = call("Unsqueeze", call("Sigmoid", call("MatMul", x, _numbers(weights))), _numbers([0], "int64"))
    limits = _numbers([BOXES], "int64"), _numbers([0.5]), _numbers([0.2])
    return Program(
        _module(x, call("NonMaxSuppression", _numbers(boxes), scores, *limits)),
        {"detections in another order": lambda inputs: rows(inputs, True, 0.2)},
        {"detections without their threshold": lambda inputs: rows(inputs, False, -1.0)},
    )


def recommender(seed: int) -> Program:
    """Rows of an embedding table that three features share, each with an offset."""
    table, offsets = _weights(seed, 60, 8), np.array([[0, 10, 30]])
    x = _var(5, 3, dtype=DType.INT64)
    return Program(
        _module(x, call("Gather", _numbers(table), call("Add", x, _numbers(offsets, "int64")))),
        {"rows looked up by NumPy": lambda inputs: [table[inputs["x"] + offsets]]},
        {"offsets of indices left out": lambda inputs: [table[inputs["x"]]]},
    )


Maker = Callable[[int], Program]

PROGRAMS: tuple[Maker, ...] = (
    *(product, softmax, normalisation, wide_integers, detections),
    *(mask, rounding, best_scores, suppression, recommender),
)
"""Makers of programs, called with a seed."""
