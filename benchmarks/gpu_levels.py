"""The levels of proof of GPU kernels over ONNX's node tests of the operators that the zoo has.

Each case becomes a DAG and its kernels. These run in the interpreter, which finds races, as loops of
`SplitAtBarriers`, and as LLVM IR on this CPU, with threads in both orders; results are compared with the
case's. Then each barrier, wait and end of a group of copies is left out in turn: if the LLVM IR is wrong
then, the interpreter has to report it. Where it reports no race, the barrier was not needed. `ptxas`
assembles all kernels for sm_80. One line of JSON for each case that is not right, and a summary.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tests.backend.cases import Case, onnx_cases
from tests.backend.similar import mismatch
from tests.gpu_on_cpu.cpu_kernels import run_on_cpu
from tests.te_cases import Tensors, case_function, case_operators, tensors_of
from tests.tir_checks import in_module
from tests.unit.native.gpu.test_default_gpu_state import with_each_fault
from tests.unit.native.te.operators.node_cases import QUICK, iterations

from intarsia.frontend.zoo import build_model, zoo
from intarsia.ir import PrimFunc
from intarsia.ir.verify import verify
from intarsia.native.dag import ComputeDAG
from intarsia.native.emission.builder import ModuleText
from intarsia.native.gpu.default_gpu_state import gpu_kernels
from intarsia.native.gpu.emit_kernels import emit_kernels
from intarsia.native.gpu.generate_ptx import generate_ptx
from intarsia.native.gpu.kernel_list import list_kernels
from intarsia.native.gpu.ptxas import assemble
from intarsia.native.te.operators import compute_rules
from intarsia.native.tir import SplitAtBarriers, interpret
from intarsia.support.errors import IntarsiaError

MODEL: Final = "sm_80"
BATCH: Final = 40
"""Number of cases whose kernels are assembled together."""
Array = npt.NDArray[Any]
Runner = Callable[[PrimFunc, dict[str, Array]], None]


@dataclass
class Summary:
    """What all cases came to.

    Attributes:
        counts: Numbers of cases and of their parts, by name.
        one_thread: Operators of cases that have a kernel of one thread.
    """

    counts: Counter[str] = field(default_factory=Counter)
    one_thread: Counter[str] = field(default_factory=Counter)


def zoo_operators() -> frozenset[str]:
    """Return the operators of all models of the zoo."""
    return frozenset(node.op_type for model in zoo() for node in build_model(model.name).graph.node)


def check_levels(names: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Check the cases of the zoo's operators; yield those that are not right, and a summary at the end.

    Args:
        names: Operators whose cases are checked; those of the zoo if not given.
    """
    operators = zoo_operators() if names is None else frozenset(names)
    with_rules, summary = frozenset(compute_rules()), Summary()
    module, stems = ModuleText(), 0
    for case in onnx_cases(("node",)):
        called = frozenset(case_operators(case))
        if not called or not called <= with_rules or not called & operators:
            continue
        for row in _check_case(case, summary):
            if isinstance(row, PrimFunc):
                stems += 1
                yield from _added(row, f"c{stems}", module, case.name, summary)
            else:
                yield row
        if stems >= BATCH:
            yield from _assembled(module, summary)
            module, stems = ModuleText(), 0
    yield from _assembled(module, summary)
    yield {"name": "summary", **summary.counts, "operators_with_a_thread_alone": dict(summary.one_thread)}


def _check_case(case: Case, summary: Summary) -> Iterator[dict[str, Any] | PrimFunc]:
    """Yield the kernels of a case, and what is wrong with them."""
    if not all(
        isinstance(value, np.ndarray | np.generic) for inputs, _ in case.data_sets for value in inputs
    ):
        summary.counts["refused"] += 1
        summary.counts["refused: sequences and optional values"] += 1
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            computations = [_tensors(case, inputs) for inputs, _ in case.data_sets]
            functions = [gpu_kernels(ComputeDAG(tuple(tensors.outputs))) for tensors in computations]
    except IntarsiaError as error:
        summary.counts["refused"] += 1
        summary.counts[f"refused: {type(error).__name__}"] += 1
        return
    if max(iterations(tensors.outputs) for tensors in computations) > QUICK:
        summary.counts["too large"] += 1
        return
    summary.counts["cases"] += 1
    for tensors, function, (_, expected) in zip(computations, functions, case.data_sets, strict=True):
        yield function
        _count_threads(case, function, tensors, summary)
        for level, run in _levels().items():
            complaint = _complaint(function, tensors, expected, case, run)
            if complaint:
                summary.counts["different"] += 1
                yield {"name": case.name, "level": level, "problem": complaint}
        yield from _faults(case, function, tensors, expected, summary)


def _levels() -> dict[str, Runner]:
    def in_interpreter(function: PrimFunc, memory: dict[str, Array]) -> None:
        verify(in_module(function))
        interpret(function, memory)

    def as_loops(function: PrimFunc, memory: dict[str, Array]) -> None:
        split = SplitAtBarriers()(in_module(function))
        verify(split)
        interpret(split.prim_func("f"), memory)

    return {
        "interpreter": in_interpreter,
        "loops": as_loops,
        "cpu form": run_on_cpu,
        "cpu form, last thread first": lambda function, memory: run_on_cpu(
            function, memory, is_descending=True
        ),
    }


def _complaint(function: PrimFunc, tensors: Tensors, expected: Sequence[Any], case: Case, run: Runner) -> str:
    """Return what is wrong with the results of kernels, as text; empty if nothing is."""
    buffers = [tensor.buffer for tensor in tensors.outputs]
    outputs = {buffer.name: np.full(buffer.shape, 77, buffer.dtype.numpy) for buffer in buffers}
    params = [param.name for param in function.params]
    inputs = {name: np.array(tensors.feeds[name], order="C") for name in params if name not in outputs}
    memory = {name: inputs[name] if name in inputs else outputs[name] for name in params}
    try:
        run(function, memory)
    except (IntarsiaError, AssertionError) as error:
        return str(error) or type(error).__name__
    results = [outputs[buffer.name] for buffer in buffers]
    return mismatch(results, expected, case.rtol, case.atol) or ""


def _faults(
    case: Case, function: PrimFunc, tensors: Tensors, expected: Sequence[Any], summary: Summary
) -> Iterator[dict[str, Any]]:
    levels = _levels()
    orders = [levels[name] for name in ("cpu form", "cpu form, last thread first")]
    for number, faulty in enumerate(with_each_fault(function)):
        races = bool(_complaint(faulty, tensors, expected, case, levels["interpreter"]))
        is_wrong = any(_complaint(faulty, tensors, expected, case, run) for run in orders)
        summary.counts["planted"] += 1
        summary.counts["planted: races"] += races
        summary.counts["planted: races, wrong in the cpu form"] += races and is_wrong
        summary.counts["planted: no two threads race, right"] += not races and not is_wrong
        if is_wrong and not races:
            yield {"name": case.name, "level": "interpreter", "problem": f"fault {number} is not shown"}


def _count_threads(case: Case, function: PrimFunc, tensors: Tensors, summary: Summary) -> None:
    kernels = list_kernels(function).kernels
    summary.counts["kernels"] += len(kernels)
    summary.counts["kernels with barriers"] += "barrier;" in str(in_module(function))
    largest = max((tensor.buffer.shape for tensor in tensors.outputs), key=np.prod, default=())
    threads = [kernel.block_loop.extent * kernel.thread_loop.extent for kernel in kernels]
    if threads and max(threads) == 1 and np.prod(largest) > 1:
        summary.one_thread.update(case_operators(case))


def _added(
    function: PrimFunc, stem: str, module: ModuleText, name: str, summary: Summary
) -> Iterable[dict[str, Any]]:
    """Add the kernels of a function to a module that is assembled later."""
    try:
        emit_kernels(function, stem, MODEL)
    except IntarsiaError as error:
        return [{"name": name, "level": "emission", "problem": str(error)}]
    emitted = emit_kernels(function, stem, MODEL, module)
    summary.counts["emitted"] += len(emitted.launches)
    return []


def _assembled(module: ModuleText, summary: Summary) -> Iterable[dict[str, Any]]:
    """Assemble a module, and count registers and spills."""
    try:
        kernels = assemble(generate_ptx(module.text(), MODEL), MODEL).kernels
    except IntarsiaError as error:
        return [{"name": "module", "level": "ptxas", "problem": str(error)[:1000]}]
    summary.counts["assembled"] += len(kernels)
    summary.counts["that spill"] += sum(kernel.spilled_bytes > 0 for kernel in kernels)
    return []


def _tensors(case: Case, inputs: Sequence[Any]) -> Tensors:
    function, values = case_function(case, [np.asarray(value) for value in inputs])
    return tensors_of(function, values)
