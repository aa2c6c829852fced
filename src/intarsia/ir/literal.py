"""How names, attribute values and tensor types are written in program text, and read back."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from intarsia.ir.attributes import AttrValue
from intarsia.ir.dtype import DType
from intarsia.ir.expr import Constant, Op
from intarsia.ir.span import Span
from intarsia.ir.types import (
    ANY,
    Dim,
    FuncType,
    OptionalType,
    SequenceType,
    SymbolicDim,
    TensorType,
    TupleType,
)
from intarsia.support.json_text import parse_json_text
from intarsia.target import VirtualDevice

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_DOMAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_RESERVED: Final = frozenset(
    {"attributes", "def", "else", "false", "fn", "free_var", "if", "inf", "let", "nan", "true"}
)
_TENSOR: Final = re.compile(r"Tensor\s*\[\s*(?:\?|\((?P<dims>.*)\))\s*,\s*(?P<dtype>\w+)\s*\]", re.DOTALL)
_DIM: Final = re.compile(r'\s*(?:(\d+)|([A-Za-z_][A-Za-z0-9_.]*|\?)|("(?:\\.|[^"\\])*"))\s*(?:,|$)')
_DEVICE_OPEN: Final = "VirtualDevice("


def name_text(name: str) -> str:
    """A name as it stands after `%` or `@`, or before `=`: plain where it can be, else quoted."""
    return name if _PLAIN.fullmatch(name) and name not in _RESERVED else json.dumps(name)


def name_of(text: str) -> str:
    """The name that `name_text` wrote.

    Raises:
        ValueError: The quoted text has an unknown escape or a line break.
    """
    return str(parse_json_text(text)) if text.startswith('"') else text


def op_text(op: Op) -> str:
    """An operator: `Conv`, `ai.onnx.ml::Scaler`, or with quotes where a name is not plain."""
    if not op.domain:
        return name_text(op.name)
    domain = op.domain if _PLAIN_DOMAIN.fullmatch(op.domain) else json.dumps(op.domain)
    return f"{domain}::{name_text(op.name)}"


def span_text(span: Span) -> str:
    """A span as an annotation: the node first, then source and operator."""
    parts = (span.node, span.source, span.operator) if span.operator else (span.node, span.source)
    return f"@span({', '.join(map(json.dumps, parts))})"


def span_of(text: str) -> Span:
    """The span that an annotation writes.

    Raises:
        ValueError: It is not two or three strings.
    """
    parts = parse_json_text(f"[{text.removeprefix('@span(').removesuffix(')')}]")
    if not 2 <= len(parts) <= 3 or not all(isinstance(part, str) for part in parts):
        raise ValueError("expected two or three strings")
    return Span(parts[1], parts[0], *parts[2:])


def device_text(device: VirtualDevice) -> str:
    """A virtual device as an annotation."""
    return f"@device({str(device).removeprefix(_DEVICE_OPEN)}"


@lru_cache(256)
def device_of(text: str) -> VirtualDevice:
    """The virtual device that an annotation writes.

    Raises:
        ProgramTextError: As VirtualDevice.parse.
    """
    return VirtualDevice.parse(_DEVICE_OPEN + text.removeprefix("@device("))


def value_text(value: AttrValue, constant_text: Callable[[Constant], str]) -> str:
    """An attribute's value, such that reading it gives the same value of the same kind.

    Raises:
        TypeError: The value is of none of the kinds that attributes have.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return int.__repr__(value)
        case float():
            return float.__repr__(value)
        case str():
            return json.dumps(value)
        case bytes():
            return _bytes_text(value)
        case Constant():
            return constant_text(value)
        case tuple():
            return f"[{', '.join(value_text(item, constant_text) for item in value)}]"
        case TensorType() | TupleType() | FuncType() | SequenceType() | OptionalType():
            return str(value)
        case _:
            raise TypeError(f"an attribute cannot hold a {type(value).__name__}")


def bytes_of(text: str) -> bytes:
    """The bytes that a text of ASCII and Python's escapes, quoted after `b`, writes.

    Raises:
        ValueError: Something but ASCII and escapes.
    """
    try:
        value = ast.literal_eval(text)
    except SyntaxError as error:
        raise ValueError(error.msg) from error
    assert isinstance(value, bytes)
    return value


@lru_cache(4096)
def tensor_type_of(text: str) -> TensorType:
    """The type that `str(TensorType)` wrote.

    Raises:
        ValueError: Malformed dimensions or an unknown element type.
    """
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise ValueError("expected Tensor[(1, 3, n), float32] or Tensor[?, float32]")
    try:
        dtype = DType(match["dtype"])
    except ValueError:
        raise ValueError(f"unknown element type {match['dtype']}") from None
    return TensorType(None if match["dims"] is None else _dims_of(match["dims"]), dtype)


def _dims_of(text: str) -> tuple[Dim, ...]:
    dims: list[Dim] = []
    position = 0
    while text[position:].strip():
        match = _DIM.match(text, position)
        if match is None:
            raise ValueError(f"expected a number, a name or ? as dimension {len(dims)}")
        number, name, quoted = match.groups()
        if number:
            dims.append(int(number))
        else:
            dims.append(ANY if name == "?" else SymbolicDim(name or parse_json_text(quoted)))
        position = match.end()
    return tuple(dims)


def _bytes_text(value: bytes) -> str:
    plain = range(0x20, 0x7F)
    escaped = (chr(b) if b in plain and chr(b) not in '"\\' else f"\\x{b:02x}" for b in value)
    return f'b"{"".join(escaped)}"'
