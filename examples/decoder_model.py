"""Decoders of language models as exporters write them: a step reads new tokens, keys and values of the past.

The inputs are `input_ids`, `attention_mask` and `position_ids` (unless left out), `past_key_values.N.key` and
`past_key_values.N.value`; the outputs are `logits`, `present.N.key` and
`present.N.value`, each the past with what is new behind it.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from examples.decoder_size import Attention, DecoderSize, Family, Positions

if TYPE_CHECKING:
    from onnx import ModelProto

OPSET: Final = 20
"""The first opset with Gelu."""
FUSED_OPSET: Final = 23
"""The first opset with Attention."""
BATCH: Final = "batch_size"
NEW: Final = "sequence_length"
PAST: Final = "past_sequence_length"
TOTAL: Final = f"{PAST} + {NEW}"
_MICROSOFT: Final = "com.microsoft"
_MASKED: Final = float(np.finfo(np.float32).min)
_ROTARY_BASE: Final = 10000.0


def write_decoder(size: DecoderSize, seed: int = 0) -> ModelProto:
    """Return a decoder as an ONNX model with random weights."""
    return _DecoderWriter(size, seed).finish()


class _DecoderWriter:
    """The graph under construction."""

    def __init__(self, size: DecoderSize, seed: int) -> None:
        self._size = size
        self._random = np.random.default_rng(seed)
        self._nodes: list[Any] = []
        self._initializers: dict[str, Any] = {}
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def finish(self) -> ModelProto:
        """Write the whole graph."""
        from onnx import helper

        size = self._size
        ids = self._input("input_ids", np.int64, (BATCH, NEW))
        mask = self._input("attention_mask", np.int64, (BATCH, TOTAL)) if size.has_mask else None
        given = (
            self._input("position_ids", np.int64, (BATCH, NEW)) if size.positions is Positions.INPUT else None
        )
        shape = (BATCH, size.shared_heads, PAST, size.head_width)
        past = [
            tuple(
                self._input(f"past_key_values.{layer}.{kind}", np.float32, shape) for kind in ("key", "value")
            )
            for layer in range(size.layers)
        ]
        self._lengths(ids, past[0][0])
        positions = self._positions(given, mask)
        is_grouped = size.attention is Attention.GROUPED
        bias = "" if is_grouped else self._bias(mask)
        table = self._weight("tokens", (size.vocabulary, size.width))
        x = self._node("Gather", table, ids)
        rotation = None
        if size.family is Family.GPT2:
            x = self._node(
                "Add",
                x,
                self._node("Gather", self._weight("positions", (size.longest, size.width)), positions),
            )
        elif not is_grouped:
            rotation = self._rotation(positions)
        if is_grouped:
            self._count_tokens(mask)
        present = []
        for number, (key, value) in enumerate(past):
            x, *cached = self._layer(x, number, key, value, bias, rotation)
            present += cached
        x = self._norm(x, "final")
        logits = self._node("MatMul", x, self._node("Transpose", table, perm=[1, 0]))
        self._output(logits, "logits", (BATCH, NEW, size.vocabulary))
        shape = (BATCH, size.shared_heads, TOTAL, size.head_width)
        for index, tensor in enumerate(present):
            self._output(tensor, f"present.{index // 2}.{('key', 'value')[index % 2]}", shape)
        graph = helper.make_graph(
            self._nodes, size.family.value, self._inputs, self._outputs, list(self._initializers.values())
        )
        is_old = size.attention is Attention.PARTS
        opsets = [helper.make_opsetid("", OPSET if is_old else FUSED_OPSET)]
        if is_grouped:
            opsets.append(helper.make_opsetid(_MICROSOFT, 1))
        return helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=9 if is_old else 11,
            producer_name="intarsia.examples",
        )

    def _lengths(self, ids: str, key: str) -> None:
        """Compute the number of tokens of the past, of new ones, and of all."""
        self._past = self._node("Shape", key, start=2, end=3)
        self._new = self._node("Shape", ids, start=1, end=2)
        self._total = self._node("Add", self._past, self._new)

    def _count_tokens(self, mask: str | None) -> None:
        """Compute what grouped attention reads: the last token of each text, and the longest length."""
        if mask is None:
            batch = self._node("Shape", "input_ids", start=0, end=1)
            counts = self._node("Expand", self._total, batch)
        else:
            counts = self._node("ReduceSum", mask, self._ints(1), keepdims=0)
        self._last = self._node("Cast", self._node("Sub", counts, self._ints(1)), to=6)
        self._longest = self._node("Cast", self._scalar_of(self._total), to=6)

    def _range(self, start: str, end: str) -> str:
        return self._node("Range", self._scalar_of(start), self._scalar_of(end), self._constant(np.int64(1)))

    def _scalar_of(self, tensor: str) -> str:
        return self._node("Squeeze", tensor, self._ints(0))

    def _positions(self, given: str | None, mask: str | None) -> str:
        """Positions of the new tokens: (batch, new), or (1, new)."""
        if given is not None:
            return given
        if self._size.positions is Positions.PAST_LENGTH:
            return self._node("Unsqueeze", self._range(self._past, self._total), self._ints(0))
        assert mask is not None, "positions of the mask need one"
        counted = self._node("Sub", self._node("CumSum", mask, self._constant(np.int64(1))), self._ints(1))
        last = self._node("Shape", counted, start=1, end=2)
        return self._node("Slice", counted, self._past, last, self._ints(1))

    def _bias(self, mask: str | None) -> str:
        """Addend of the scores, which hides later tokens and those that the mask has as 0."""
        queries = self._node("Unsqueeze", self._range(self._past, self._total), self._ints(1))
        visible = self._node(
            "LessOrEqual", self._range(self._constant(np.zeros(1, np.int64)), self._total), queries
        )
        if self._size.window:
            first = self._node("Sub", queries, self._ints(self._size.window))
            keys = self._range(self._constant(np.zeros(1, np.int64)), self._total)
            visible = self._node("And", visible, self._node("Greater", keys, first))
        if mask is not None:
            seen = self._node("Unsqueeze", self._node("Cast", mask, to=9), self._ints(1, 2))
            visible = self._node("And", visible, seen)
        return self._node("Where", visible, self._scalar(0.0), self._scalar(_MASKED))

    def _rotation(self, positions: str) -> tuple[str, str]:
        """Cosine and sine of the rotary embedding: (batch, 1, new, head width)."""
        width = self._size.head_width
        frequencies = _ROTARY_BASE ** -(np.arange(0, width, 2, dtype=np.float32) / width)
        column = self._node("Unsqueeze", self._node("Cast", positions, to=1), self._ints(2))
        half = self._node("Mul", column, self._constant(frequencies.astype(np.float32)))
        angles = self._node("Unsqueeze", self._node("Concat", half, half, axis=-1), self._ints(1))
        return self._node("Cos", angles), self._node("Sin", angles)

    def _layer(
        self, x: str, number: int, key: str, value: str, bias: str, rotation: tuple[str, str] | None
    ) -> tuple[str, str, str]:
        """One layer; its result, keys and values."""
        name = f"layer{number}"
        attended, keys, values = self._attention(
            self._norm(x, f"{name}.norm1"), name, (key, value), bias, rotation
        )
        x = self._node("Add", x, attended)
        return self._node("Add", x, self._feed_forward(self._norm(x, f"{name}.norm2"), name)), keys, values

    def _attention(
        self, x: str, name: str, past: tuple[str, str], bias: str, rotation: tuple[str, str] | None
    ) -> tuple[str, str, str]:
        size = self._size
        shared = size.shared_heads * size.head_width
        joined = self._linear(x, f"{name}.qkv", (size.width, size.width + 2 * shared))
        if size.attention is Attention.GROUPED:
            context, *cached = self._grouped(joined, past)
            return self._linear(context, f"{name}.projection", (size.width, size.width)), cached[0], cached[1]
        parts = self._nodes_of("Split", joined, self._ints(size.width, shared, shared), outputs=3, axis=-1)
        query, key, value = (
            self._heads(part, heads)
            for part, heads in zip(parts, (size.heads, size.shared_heads, size.shared_heads), strict=True)
        )
        if rotation is not None:
            query, key = (self._rotated(tensor, rotation) for tensor in (query, key))
        attend = self._of_past if size.attention is Attention.OF_PAST else self._of_joined
        context, key, value = attend(query, key, value, past, bias)
        flat = self._node(
            "Reshape", self._node("Transpose", context, perm=[0, 2, 1, 3]), self._ints(0, 0, size.width)
        )
        return self._linear(flat, f"{name}.projection", (size.width, size.width)), key, value

    def _of_joined(
        self, query: str, key: str, value: str, past: tuple[str, str], bias: str
    ) -> tuple[str, str, str]:
        """Join keys and values of the past and new ones, and attend to them: the result, keys and values."""
        key, value = (
            self._node("Concat", old, new, axis=2) for old, new in zip(past, (key, value), strict=True)
        )
        seen, weighed = (self._repeated(tensor) for tensor in (key, value))
        if self._size.attention is Attention.OF_JOINED:
            return self._node("Attention", query, seen, weighed, bias), key, value
        product = self._node("MatMul", query, self._node("Transpose", seen, perm=[0, 1, 3, 2]))
        scaled = self._node("Div", product, self._scalar(sqrt(self._size.head_width)))
        weights = self._node("Softmax", self._node("Add", scaled, bias), axis=-1)
        return self._node("MatMul", weights, weighed), key, value

    def _of_past(
        self, query: str, key: str, value: str, past: tuple[str, str], bias: str
    ) -> tuple[str, str, str]:
        """Attention as one operator that joins: its result, keys and values."""
        context, keys, values = self._nodes_of("Attention", query, key, value, bias, *past, outputs=3)
        return context, keys, values

    def _grouped(self, joined: str, past: tuple[str, str]) -> list[str]:
        """Attention that splits, rotates, and writes into the past: its result, keys and values."""
        size, is_rotated = self._size, self._size.family is Family.LLAMA
        frequencies = _ROTARY_BASE ** -(np.arange(0, size.head_width, 2) / size.head_width)
        angles = np.outer(np.arange(size.longest), frequencies)
        tables = [self._array(f.__name__, f(angles).astype(np.float32)) for f in (np.cos, np.sin)]
        return self._nodes_of(
            "GroupQueryAttention",
            joined,
            *("", ""),
            *past,
            self._last,
            self._longest,
            *(tables if is_rotated else ()),
            outputs=3,
            domain=_MICROSOFT,
            num_heads=size.heads,
            kv_num_heads=size.shared_heads,
            do_rotary=int(is_rotated),
        )

    def _heads(self, x: str, heads: int) -> str:
        split = self._node("Reshape", x, self._ints(0, 0, heads, self._size.head_width))
        return self._node("Transpose", split, perm=[0, 2, 1, 3])

    def _rotated(self, x: str, rotation: tuple[str, str]) -> str:
        half = self._size.head_width // 2
        low, high = self._nodes_of("Split", x, self._ints(half, half), outputs=2, axis=-1)
        turned = self._node("Concat", self._node("Neg", high), low, axis=-1)
        return self._node("Add", self._node("Mul", x, rotation[0]), self._node("Mul", turned, rotation[1]))

    def _repeated(self, x: str) -> str:
        """Keys or values, once for each query head of their group."""
        size = self._size
        groups = size.heads // size.shared_heads
        if groups == 1:
            return x
        batch, length = (self._node("Shape", x, start=axis, end=axis + 1) for axis in (0, 2))
        inner = self._ints(size.head_width)
        grid_shape = self._node("Concat", batch, self._ints(size.shared_heads, groups), length, inner, axis=0)
        grid = self._node("Expand", self._node("Unsqueeze", x, self._ints(2)), grid_shape)
        return self._node(
            "Reshape", grid, self._node("Concat", batch, self._ints(size.heads), length, inner, axis=0)
        )

    def _feed_forward(self, x: str, name: str) -> str:
        size = self._size
        if size.family is Family.GPT2:
            hidden = self._node(
                "Gelu", self._linear(x, f"{name}.widen", (size.width, size.hidden)), approximate="tanh"
            )
        else:
            gate = self._linear(x, f"{name}.gate", (size.width, size.hidden))
            swish = self._node("Mul", gate, self._node("Sigmoid", gate))
            hidden = self._node("Mul", swish, self._linear(x, f"{name}.widen", (size.width, size.hidden)))
        return self._linear(hidden, f"{name}.narrow", (size.hidden, size.width))

    def _norm(self, x: str, name: str) -> str:
        scale = self._array(f"{name}.scale", np.ones(self._size.width, np.float32))
        if self._size.family is Family.GPT2:
            shift = self._weight(f"{name}.shift", (self._size.width,))
            return self._node("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)
        square = self._node("ReduceMean", self._node("Mul", x, x), self._ints(-1))
        root = self._node("Sqrt", self._node("Add", square, self._scalar(1e-5)))
        return self._node("Mul", self._node("Div", x, root), scale)

    def _linear(self, x: str, name: str, widths: tuple[int, int]) -> str:
        product = self._node("MatMul", x, self._weight(name, widths))
        if self._size.family is Family.LLAMA:
            return product
        return self._node("Add", product, self._weight(f"{name}.bias", (widths[1],)))

    def _node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self._nodes_of(operator, *inputs, outputs=1, **attributes)[0]

    def _nodes_of(self, operator: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        from onnx import helper

        names = [
            f"{operator}_{len(self._nodes)}" + (f".{index}" if index else "") for index in range(outputs)
        ]
        self._nodes.append(helper.make_node(operator, inputs, names, name=names[0], **attributes))
        return names

    def _weight(self, name: str, shape: tuple[int, ...]) -> str:
        scale = 0.02 if len(shape) == 1 else shape[0] ** -0.5
        return self._array(name, (self._random.standard_normal(shape, np.float32) * np.float32(scale)))

    def _ints(self, *values: int) -> str:
        return self._constant(np.array(values, np.int64))

    def _scalar(self, value: float) -> str:
        return self._constant(np.array(value, np.float32))

    def _constant(self, value: Any) -> str:
        array = np.asarray(value)
        return self._array(f"constant_{array.dtype}_{array.shape}_{array.tolist()}", array)

    def _array(self, name: str, array: Any) -> str:
        from onnx import numpy_helper

        if name not in self._initializers:
            self._initializers[name] = numpy_helper.from_array(array, name)
        return name

    def _input(self, name: str, dtype: Any, shape: tuple[int | str, ...]) -> str:
        from onnx import helper

        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def _output(self, tensor: str, name: str, shape: tuple[int | str, ...]) -> None:
        from onnx import TensorProto, helper

        self._nodes.append(helper.make_node("Identity", [tensor], [name], name=name))
        self._outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
