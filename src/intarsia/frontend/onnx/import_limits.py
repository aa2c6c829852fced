"""Limits on what an import may make of a file: a few bytes can describe more than any machine holds."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Final, TypeAlias

from intarsia.frontend.onnx.graph_walk import nodes_of, with_nested
from intarsia.ir import Call, Constant, Expr, Op, OptionalType, SequenceType, TensorType, Tuple, Type
from intarsia.op.constant_argument import constant_arguments
from intarsia.support.errors import UnsupportedModelError

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, NodeProto

_Key: TypeAlias = tuple[str, str, str]

MAX_ELEMENTS: Final = 1 << 31
"""8 GiB of float32. Attention over 8,192 tokens with 32 heads has as many scores."""

MAX_NODES: Final = 1 << 18
"""About five times the nodes of the largest exports; their import would take minutes."""

MAX_RANK: Final = 64
"""Dimensions of the largest NumPy array."""

_MOST_AXES: Final = 2 * MAX_RANK
"""Maximum length of an argument with one number per axis, or two (pads)."""

_MAX_INLINED_BYTES: Final = 1 << 28
"""Bytes of constants after inlining, beyond the model's size: a function's constants repeat at each call."""

_SMALL_SPARSE: Final = 1 << 24
"""Elements that the dense form of any sparse tensor may have."""

_MOST_ZEROS: Final = 1024
"""Elements of a larger sparse tensor per stored element."""

_WINDOWED: Final = frozenset(
    {"Conv", "ConvInteger", "QLinearConv", "MaxPool", "AveragePool", "LpPool", "Pad"}
)

_SPLITS: Final = frozenset({"Split", "SplitToSequence"})
"""Operators with a constant argument of one number per result."""

_SHAPED: Final = frozenset({"ConstantOfShape", "Expand", "Reshape"})
"""Operators with a constant argument that is the shape of the result."""


@dataclass(frozen=True, slots=True)
class ImportLimits:
    """Limits on the size of an imported model.

    Attributes:
        max_elements: Maximum number of elements of an input or a computed value. Weights in the file may have
            more.
        max_nodes: Maximum number of nodes after the model's functions are inlined.
    """

    max_elements: int = MAX_ELEMENTS
    max_nodes: int = MAX_NODES

    def check_value(self, name: str, value: Expr) -> None:
        """Refuse a value with too many elements or dimensions, or an operator that pads one to too many.

        Raises:
            UnsupportedModelError: Its type, or that of a padded argument, has more than `max_elements`; it
                has more than `MAX_RANK` dimensions, or its operator's shape or axes have more elements than
                such a value needs.
        """
        if isinstance(value, Constant):
            return
        _check_axes(name, value)
        for type_ in _tensors(value.checked_type):
            _check_rank(name, len(type_.shape or ()))
            self.check_shape(f"the value {name!r}", type_.shape, f" ({type_})")
        padded = _padded_shape(value)
        if padded is not None:
            self.check_shape(f"the value {name!r} is computed from padded data that", padded)

    def check_sparse(self, name: str, dims: Sequence[int], stored: int) -> None:
        """Refuse a sparse tensor with a dense form that is large, and far larger than its stored form.

        Raises:
            UnsupportedModelError: It is.
        """
        what, most = f"the sparse tensor {name!r}", max(_SMALL_SPARSE, _MOST_ZEROS * stored)
        self.check_shape(what, dims)
        if math.prod(dims) > most:
            raise UnsupportedModelError(
                f"{what} has {math.prod(dims)} elements of which {stored} are stored, "
                f"expected at most {most} of so few",
                help="export the model with a computed tensor (ConstantOfShape, ScatterND) instead",
            )

    def check_shape(self, what: str, shape: Sequence[object] | None, shown: str = "") -> None:
        """Refuse a shape with too many elements; symbolic dimensions and those of 0 count as 1.

        Dimensions beside a 0 count because loops and sums over the other axes are as long without it.
        """
        count = math.prod(dim for dim in shape or () if isinstance(dim, int) and dim)
        if count > self.max_elements:
            raise UnsupportedModelError(
                f"{what} has {count} elements{shown}, more than the limit of {self.max_elements}",
                help="if that is meant, raise the limit: --max-elements=N on the command line, "
                "limits=ImportLimits(max_elements=N) in from_onnx",
            )

    def check_functions(self, model: ModelProto) -> None:
        """Refuse a model with too many nodes after its functions are inlined.

        They are counted, not expanded: 41 functions that call each other twice make 2**41 nodes.

        Raises:
            UnsupportedModelError: There are more than `max_nodes`, or their constants too large.
        """
        if not model.functions:
            return
        sizes = _expanded_sizes(model.functions)
        nodes, size = _expanded_size(nodes_of(model.graph), sizes)
        if nodes > self.max_nodes:
            raise UnsupportedModelError(
                f"the model has {nodes} nodes with its functions expanded, "
                f"more than the limit of {self.max_nodes}",
                help="if that is meant, raise the limit: limits=ImportLimits(max_nodes=N) in from_onnx",
            )
        if size > _MAX_INLINED_BYTES + model.ByteSize():
            raise UnsupportedModelError(
                f"the model's nodes take {size} bytes with its functions expanded, more than the limit of "
                f"{_MAX_INLINED_BYTES} beyond the model's own size",
                help="pass the constants of functions that are called often as arguments",
            )


UNLIMITED: Final = ImportLimits(1 << 62, 1 << 62)
"""For models that were imported before."""

_current: Final = ContextVar("import limits", default=ImportLimits())  # noqa: B039 - frozen


def current_limits() -> ImportLimits:
    """Return the limits of imports that are given none."""
    return _current.get()


@contextmanager
def default_limits(limits: ImportLimits) -> Generator[None]:
    """Let imports that are given no limits have these inside of a `with` statement."""
    token = _current.set(limits)
    try:
        yield
    finally:
        _current.reset(token)


def _tensors(type_: Type | None) -> Iterator[TensorType]:
    match type_:
        case TensorType():
            yield type_
        case SequenceType(element) | OptionalType(element):
            yield from _tensors(element)
        case _:
            fields: Iterable[Type] = getattr(type_, "fields", ())
            for field in fields:
                yield from _tensors(field)


def _check_axes(name: str, value: Expr) -> None:
    """Refuse a call with a long vector as shape, sizes, pads or axes: engines would compute it, then fail."""
    if not isinstance(value, Call) or not isinstance(value.op, Op) or value.op.domain:
        return
    operator = value.op.name
    for position in constant_arguments(value) if operator not in _SPLITS else ():
        type_ = value.args[position].checked_type if position < len(value.args) else None
        if not isinstance(type_, TensorType) or not type_.is_static:
            continue
        count = math.prod(type_.static_shape)
        if operator in _SHAPED:
            _check_rank(name, count)
        if count > _MOST_AXES:
            raise UnsupportedModelError(
                f"argument {position} of {operator}, which makes {name!r}, has {count} elements, "
                f"expected at most {_MOST_AXES}"
            )


def _check_rank(name: str, rank: int) -> None:
    if rank > MAX_RANK:
        raise UnsupportedModelError(
            f"the value {name!r} has {rank} dimensions, more than the limit of {MAX_RANK}"
        )


def _padded_shape(value: Expr) -> tuple[int, ...] | None:
    """Shape of the first argument with the operator's padding, where both are known."""
    if not isinstance(value, Call) or not isinstance(value.op, Op) or not value.args:
        return None
    pads, type_ = value.attrs.get("pads"), value.args[0].checked_type
    if value.op.name not in _WINDOWED or not isinstance(pads, tuple) or not isinstance(type_, TensorType):
        return None
    if not type_.is_static or isinstance(value.args[0], Tuple):
        return None
    shape, axes = list(type_.static_shape), len(pads) // 2
    for axis, dim in enumerate(shape[len(shape) - axes :] if axes <= len(shape) else ()):
        ends = (pads[axis], pads[axis + axes])
        shape[len(shape) - axes + axis] = dim + sum(max(0, end) for end in ends if isinstance(end, int))
    return tuple(shape)


def _expanded_sizes(functions: Iterable[FunctionProto]) -> Mapping[_Key, tuple[int, int]]:
    """Number of nodes and bytes of each function, those that it calls included; recursion counts once."""
    bodies = {(item.domain, item.name, item.overload): tuple(with_nested(item.node)) for item in functions}
    calls = {key: {_key(node) for node in nodes} & bodies.keys() for key, nodes in bodies.items()}
    sizes: dict[_Key, tuple[int, int]] = {}
    try:
        order = tuple(TopologicalSorter(calls).static_order())
    except CycleError:
        return sizes  # onnx's inliner refuses recursion, and names it
    for key in order:
        sizes[key] = _expanded_size(bodies[key], sizes)
    return sizes


def _expanded_size(nodes: Iterable[NodeProto], sizes: Mapping[_Key, tuple[int, int]]) -> tuple[int, int]:
    count = size = 0
    for node in nodes:
        inner_count, inner_size = sizes.get(_key(node), (1, node.ByteSize()))
        count += inner_count
        size += inner_size
    return count, size


def _key(node: NodeProto) -> _Key:
    return node.domain, node.op_type, node.overload
