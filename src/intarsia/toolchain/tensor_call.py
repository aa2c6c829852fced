"""Operator predicates by domain and element type, for the engines that know tensors only."""

from __future__ import annotations

from collections.abc import Iterator

from intarsia.ir import Call, DType, FuncType, Op, TensorType, TupleType, Type
from intarsia.op.opaque import declared_toolchains


def is_tensor_call(call: Call, domains: frozenset[str], without: frozenset[DType]) -> bool:
    """Whether a call is of an operator of these domains, on and to tensors of none of the types `without`.

    A type that is not known yet counts as fitting: the engine has the last word when it compiles.
    """
    if not isinstance(call.op, Op) or call.op.domain not in domains:
        return False
    types = (call.checked_type, *(argument.checked_type for argument in call.args))
    return all(_fits(part, without) for known in types for part in _parts(known))


def declared_domains(call: Call, toolchain: str) -> frozenset[str]:
    """The domain of a call's operator, if a package declares that the toolchain runs it; else no domain."""
    if isinstance(call.op, Op) and toolchain in declared_toolchains(call.op.domain, call.op.name):
        return frozenset({call.op.domain})
    return frozenset()


def _parts(type_: Type | None) -> Iterator[Type]:
    match type_:
        case None:
            return
        case TupleType(fields=fields):
            for field in fields:
                yield from _parts(field)
        case FuncType(params=params, result=result):  # the body of a loop
            for inner in (*params, result):
                yield from _parts(inner)
        case _:
            yield type_


def _fits(part: Type, without: frozenset[DType]) -> bool:
    return isinstance(part, TensorType) and part.dtype not in without
