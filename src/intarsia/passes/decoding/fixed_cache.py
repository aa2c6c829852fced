"""Rewrite a function with a growing cache for one of fixed capacity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from intarsia.ir import (
    Call,
    Constant,
    Dim,
    DType,
    Expr,
    Function,
    TensorType,
    Tuple,
    Var,
    post_order,
    with_fields,
)
from intarsia.ir.cache import Cache, CacheState, with_cache
from intarsia.op import call
from intarsia.op.infer import typed
from intarsia.passes.decoding.attention_parts import lowest_of
from intarsia.passes.decoding.growing_cache import GrowingCache
from intarsia.passes.decoding.length_values import (
    bound_twins,
    position_arguments,
    result_shapes,
    token_inputs,
    token_results,
)
from intarsia.passes.decoding.split_products import ints, size_of, split_product
from intarsia.passes.decoding.split_value import SplitValue, split_call
from intarsia.passes.rules.rewrite_original import rewrite_original
from intarsia.passes.rules.tensor_facts import dims_of, int_attr, operator_name
from intarsia.support.free_names import free_name

_LENGTH_NAME = "cache_length"


def with_fixed_cache(
    function: Function, cache: GrowingCache, capacities: tuple[int, ...], chunks: tuple[int, ...]
) -> Function | None:
    """Return the function with a cache of fixed capacity, None if its attention is not recognised.

    Raises:
        UnknownPositionsError: Positions depend on the length of the past in a way that is not an offset.
    """
    assert isinstance(function.body, Tuple)
    rewriting = _Rewriting(function, cache, 2 * capacities[-1])
    done: dict[Expr, Expr] = {}
    # As a parameter the length belongs to the program, so that rewriting keeps it as it is.
    extended = with_fields(function, params=(*function.params, rewriting.length), checked_type=None)
    rewritten = rewrite_original(extended, rewriting.rule, done.__setitem__)
    shapes = result_shapes(function, cache)
    fields = [_shaped(done[item], shape) for item, shape in zip(function.body.fields, shapes, strict=True)]
    for state in cache.states:
        dims = dims_of(state.past) or ()
        shape = (*dims[: state.axis], cache.new, *dims[state.axis + 1 :])
        fields[state.result] = _shaped(done[state.new], shape)
    params = rewritten.params if rewriting.is_length_used else rewritten.params[:-1]
    body = typed(Tuple(tuple(fields)))
    result = typed(with_fields(rewritten, params=params, body=body, checked_type=None))
    assert isinstance(result, Function)
    if not rewriting.is_complete(result) or not token_inputs(function, cache):
        return None
    return with_cache(result, _declared(function, cache, capacities, chunks, rewriting, shapes))


@dataclass(eq=False)
class _Rewriting:
    """The state of one rewriting.

    Attributes:
        function: The function.
        cache: Its growing cache.
        reach: Largest distance of two positions, with the room for the past.
        length: Parameter of the number of valid tokens of the past.
        is_length_used: Whether something reads it.
    """

    function: Function
    cache: GrowingCache
    reach: int
    is_length_used: bool = False
    _splits: dict[Expr, SplitValue] = field(default_factory=dict)
    _scores: set[Expr] = field(default_factory=set)
    _masked: set[Expr] = field(default_factory=set)

    def __post_init__(self) -> None:
        names = {param.name for param in self.function.params}
        self.length = Var(free_name(_LENGTH_NAME, names), checked_type=TensorType((1,), DType.INT64))
        self._joined = {state.joined: state for state in self.cache.states}
        self._positions = position_arguments(self.function, self.cache, self.reach)
        self._twins = bound_twins(self.function, self.cache)
        if self.cache.mask is not None:
            self._masked.add(self.cache.mask)

    def rule(self, node: Expr, current: Expr) -> Expr:
        """Return what replaces an expression, given it over rewritten children."""
        if not isinstance(node, Call) or not isinstance(current, Call):
            return current
        if any(arg in self._masked for arg in node.args):
            self._masked.add(node)
        if node in self._joined:
            self._splits[node] = SplitValue(current.args[0], current.args[1], self._joined[node].axis)
            return current
        value = split_call(node, current, self._splits, self._twins)
        if value is not None:
            self._splits[node] = value
            return current
        return self._rewritten(node, current)

    def is_complete(self, rewritten: Function) -> bool:
        """Whether nothing joins a state any more, and no result has scores that no Softmax masks."""
        assert isinstance(self.function.body, Tuple)
        pasts = {state.past for state in self.cache.states}
        joins = (
            isinstance(node, Call) and operator_name(node) == "Concat" and pasts.intersection(node.args)
            for node in post_order(rewritten.body)
        )
        return not any(joins) and not any(item in self._scores for item in self.function.body.fields)

    def _rewritten(self, node: Call, current: Call) -> Expr:
        name = operator_name(node)
        if name == "Shape" and node.args[0] in self._splits:
            return _shape_of_joined(current, self._splits[node.args[0]])
        if node in self._positions:
            return self._with_positions(current, self._positions[node])
        if name == "Softmax" and any(arg in self._scores for arg in node.args):
            return self._masked_softmax(node, current)
        if any(arg in self._scores for arg in node.args):
            self._scores.add(node)
        if name == "MatMul" and node.args[1] in self._splits and node.args[0] not in self._splits:
            value = self._splits[node.args[1]]
            product = split_product(current.args[0], value)
            if value.axis == len(dims_of(value.past) or ()) - 1:
                self._scores.add(node)
            return current if product is None else product
        return current

    def _with_positions(self, current: Call, position: int) -> Expr:
        """Return a call with positions counted in valid tokens in place of those counted in room."""
        state = self.cache.states[0]
        self.is_length_used = True
        args = list(current.args)
        unused = call("Sub", size_of(state.past, state.axis), self.length)
        type_ = args[position].checked_type
        assert isinstance(type_, TensorType)
        unused = call("Cast", unused, to=_onnx_type(type_.dtype))
        args[position] = call("Sub", args[position], unused)
        return typed(with_fields(current, args=tuple(args), checked_type=None))

    def _masked_softmax(self, node: Call, current: Call) -> Expr:
        """Return a Softmax of scores that are lowest where the past is not valid, or padding."""
        scores = current.args[0]
        rank = len(dims_of(node) or ())
        if int_attr(node.attrs, "axis", -1) not in (-1, rank - 1):
            self._scores.add(node)
            return current
        if node in self._masked:
            return current
        type_ = scores.checked_type
        assert isinstance(type_, TensorType)
        if self.cache.mask is not None and rank == 4:  # a row may have nothing but padding: no -inf
            flags = call("Cast", self.cache.mask, to=_onnx_type(DType.BOOL))
            visible: Expr = call("Unsqueeze", flags, ints(1, 2))
            hidden = lowest_of(type_.dtype)
        else:
            visible, hidden = self._valid_keys(), -np.inf
        masked = call("Where", visible, scores, Constant(np.array(hidden, type_.dtype.numpy)))
        return typed(with_fields(current, args=(masked,), checked_type=None))

    def _valid_keys(self) -> Expr:
        """Return whether keys are of new tokens, or of valid ones of the past."""
        self.is_length_used = True
        state = self.cache.states[0]
        room = call("Squeeze", size_of(state.past, state.axis), ints(0))
        zero, one = (Constant(np.array(value, np.int64)) for value in (0, 1))
        of_past = call("Less", call("Range", zero, room, one), self.length)
        tokens = size_of(self._splits[state.joined].new, state.axis)
        return call("Concat", of_past, call("Expand", Constant(np.array(True)), tokens), axis=0)


def _shaped(expr: Expr, shape: tuple[Dim, ...] | None) -> Expr:
    """Return a result with its dimensions in its type, where inference has seen fewer."""
    type_ = expr.checked_type
    if shape is None or not isinstance(type_, TensorType) or not isinstance(expr, Call):
        return expr
    return with_fields(expr, checked_type=TensorType(shape, type_.dtype))


def _onnx_type(dtype: DType) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(dtype.numpy))


def _shape_of_joined(shape: Call, value: SplitValue) -> Expr:
    """Return the shape of a joined value without joining it."""
    rank = len(dims_of(value.past) or ())
    start, end = int_attr(shape.attrs, "start", 0), int_attr(shape.attrs, "end", rank)
    axes = range(*slice(start, end).indices(rank))
    parts = [_size_of_joined(value, axis) for axis in axes]
    return parts[0] if len(parts) == 1 else call("Concat", *parts, axis=0) if parts else shape


def _size_of_joined(value: SplitValue, axis: int) -> Expr:
    size = size_of(value.past, axis)
    if axis == value.axis:
        return call("Add", size, size_of(value.new, axis))
    return call("Mul", size, ints(value.groups)) if axis == 1 and value.groups > 1 else size


def _declared(
    function: Function,
    cache: GrowingCache,
    capacities: tuple[int, ...],
    chunks: tuple[int, ...],
    rewriting: _Rewriting,
    shapes: Sequence[tuple[Dim, ...] | None],
) -> Cache:
    """Return the declaration of the cache."""
    assert isinstance(function.body, Tuple)
    given = function.attrs.get("output_names")
    count = len(function.body.fields)
    names = given if isinstance(given, tuple) else tuple(f"output_{number}" for number in range(count))
    of_states = {state.result for state in cache.states}
    results = token_results(shapes, cache)
    return Cache(
        tuple(CacheState(item.past.name, str(names[item.result]), item.axis) for item in cache.states),
        capacities,
        (cache.new,) if isinstance(cache.new, int) else chunks,
        tuple((param.name, axis) for param, axis in token_inputs(function, cache)),
        tuple((str(names[number]), axis) for number, axis in results.items() if number not in of_states),
        cache.mask.name if cache.mask is not None else "",
        cache.positions.name if cache.positions is not None else "",
        rewriting.length.name if rewriting.is_length_used else "",
    )
