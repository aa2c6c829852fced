"""The work of groups of nodes of a kernel's source: operations, bytes, and the bound of this machine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Final, Self

from intarsia.ir import Call, Constant, DType, Expr, Op, TensorType, Tuple, TupleGetItem, Var, post_order
from intarsia.native.least_work import least_multiply_adds
from intarsia.native.machine.isa import Isa
from intarsia.native.roofline import Roofline
from intarsia.op.work import is_quantized, multiply_adds
from intarsia.runtime.kernel import KernelSource
from intarsia.runtime.kernel_profiler import KernelWork, ProfiledKernel
from intarsia.support.errors import CompileError
from intarsia.target import Target
from intarsia.target.cpu import usable_cores
from intarsia.toolchain.source_function import source_function
from intarsia.toolchain.source_graph import EngineKernel, SourceGraph

_PRODUCTS_OF_DOT: Final = 4
"""Products of bytes for each product of float32 with dot instructions (VNNI: vpdpbusd to vfmadd)."""
_PRODUCTS_OF_PAIRS: Final = 2
"""Those without: vpmaddubsw has four times the products of vfmadd, but vpmaddwd follows on the same ports."""


@dataclass(frozen=True, slots=True)
class SourceWork:
    """The operator calls of a source by node, and the roofline of the machine.

    Attributes:
        calls: Calls of operators by the name of their node.
        readers: Calls that read each value; a result of the function is read by the function.
        roofline: Peak and bandwidth for the source's number of threads; None if they cannot be measured.
    """

    calls: Mapping[str, Sequence[Call]]
    readers: Mapping[Expr, Collection[Expr]]
    roofline: Roofline | None

    @classmethod
    def of(cls, source: KernelSource) -> Self:
        """Return the work of a source; the first one in a process measures the roofline in about a second.

        Raises:
            CompileError: The source is no program that Intarsia reads.
        """
        function = source_function(source)
        calls: dict[str, list[Call]] = defaultdict(list)
        readers: dict[Expr, list[Expr]] = defaultdict(list)
        for expr in post_order(function.body):
            if isinstance(expr, Call) and isinstance(expr.op, Op):
                if expr.span is not None:
                    calls[expr.span.node].append(expr)
                for value in _values(expr.args):
                    readers[value].append(expr)
        for value in _values((function.body,)):
            readers[value].append(function)
        target = Target(source.target)
        threads = target.option("threads", usable_cores(Path("/")))
        return cls(calls, readers, _roofline(threads) if target.kind == "cpu" else None)

    def multiply_adds(self, name: str) -> int:
        """Return the multiply-adds of the products of a node."""
        return sum(map(multiply_adds, self.calls.get(name, ())))

    def of_nodes(self, names: Sequence[str]) -> KernelWork | None:
        """Return the work of a kernel that computes some nodes; None if a node or a shape is not known."""
        calls = [call for name in names for call in self.calls.get(name, ())]
        if not calls or not all(map(_is_static, calls)):
            return None
        inside = frozenset(calls)
        read = (value for call in calls for value in _values(call.args))
        entering = dict.fromkeys(value for value in read if _origin(value) not in inside)
        leaving = {
            value: None
            for value, readers in self.readers.items()
            if _origin(value) in inside and not inside.issuperset(readers)
        }
        moved = sum(_byte_count(value) for value in (*entering, *leaving))
        bound = None
        if self.roofline is not None:
            bound = self.roofline.seconds(2 * sum(map(_least_products, calls)), moved)
        return KernelWork(2 * sum(map(multiply_adds, calls)), moved, bound)


def describe_kernels(source: KernelSource, kernels: Sequence[EngineKernel]) -> tuple[ProfiledKernel, ...]:
    """Return the kernels of an engine with their nodes and work.

    Args:
        source: Source of the engine's kernels.
        kernels: Kernels in the order of execution, with the nodes that are known to be in each.
    """
    graph = SourceGraph.of(source)
    members = graph.assign(kernels)
    work = None
    with suppress(CompileError):  # of a domain that Intarsia does not read: names without numbers
        work = SourceWork.of(source)
    counts = Counter(name for names in members for name in names)
    shared = frozenset(name for name, count in counts.items() if count > 1)
    pairs = zip(kernels, members, strict=True)
    return tuple(_described(kernel, names, graph, work, shared) for kernel, names in pairs)


def _described(
    kernel: EngineKernel,
    names: tuple[str, ...],
    graph: SourceGraph,
    work: SourceWork | None,
    shared: frozenset[str],
) -> ProfiledKernel:
    """Return a kernel; nothing is known of its part of the work of nodes that several kernels share."""
    if not names:
        return ProfiledKernel(kernel.name, is_conversion=kernel.is_conversion)
    nodes = tuple(dict.fromkeys(graph.nodes[name] for name in names))
    anchor = next((name for name in names if name in kernel.nodes), names[0])
    if work is None:
        return ProfiledKernel(kernel.name, nodes, graph.nodes[anchor])
    largest = max(names, key=work.multiply_adds)
    anchor = largest if work.multiply_adds(largest) else anchor
    known_work = work.of_nodes(names) if shared.isdisjoint(names) else None
    return ProfiledKernel(kernel.name, nodes, graph.nodes[anchor], known_work)


def _roofline(threads: int) -> Roofline | None:
    """Return the roofline of this machine; None without the code generator or the memory to measure it."""
    with suppress(CompileError, MemoryError):
        return Roofline.measured(Isa.host(), threads)
    return None


def _least_products(call: Call) -> float:
    """Return the multiply-adds of float32 that take as long as the fewest products of a call.

    Products of integers of eight bits are computed several at a time, and not by Winograd's algorithms.
    """
    if not _multiplies_integers(call):
        return least_multiply_adds(call)
    has_dots = Isa.host().has_int8_dot
    return multiply_adds(call) / (_PRODUCTS_OF_DOT if has_dots else _PRODUCTS_OF_PAIRS)


def _multiplies_integers(call: Call) -> bool:
    """Whether engines may compute the products of a call in integers: all its factors are quantised."""
    if is_quantized(call):
        return True
    factors = call.args[:2]
    return len(factors) == 2 and all(map(_is_dequantized, factors))


def _is_dequantized(value: Expr) -> bool:
    return isinstance(value, Call) and isinstance(value.op, Op) and value.op.name == "DequantizeLinear"


def _is_static(call: Call) -> bool:
    types = [call.checked_type, *(arg.checked_type for arg in call.args)]
    return all(not isinstance(type_, TensorType) or type_.is_static for type_ in types)


def _values(args: Sequence[Expr]) -> list[Expr]:
    """Return the tensors among arguments, fields of tuples included; functions are none."""
    values: list[Expr] = []
    waiting = list(reversed(args))
    while waiting:
        match waiting.pop():
            case Tuple(fields=fields):
                waiting += reversed(fields)
            case Call() | Constant() | TupleGetItem() | Var() as value:
                values.append(value)
    return values


def _origin(value: Expr) -> Expr:
    """Return the call that a value is a field of, or the value."""
    while isinstance(value, TupleGetItem):
        value = value.tuple_value
    return value


def _byte_count(value: Expr) -> int:
    """Return the bytes of a tensor of known shape; strings and other values count as nothing.

    Quantised weights count as they are stored.
    """
    if isinstance(value, Call) and _is_dequantized(value) and isinstance(value.args[0], Constant):
        return sum(map(_byte_count, value.args))
    type_ = value.checked_type
    if not isinstance(type_, TensorType) or not type_.is_static or type_.dtype is DType.STRING:
        return 0
    return prod(type_.static_shape) * type_.dtype.numpy.itemsize
