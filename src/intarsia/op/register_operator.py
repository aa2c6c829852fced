"""The registration of operators that ONNX does not have (docs/guide/write_an_operator.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from intarsia.ir import Type
from intarsia.op.opaque import is_opaque_domain
from intarsia.op.operator_definition import (
    NATIVE,
    OperatorDefinition,
    registered_definition,
    replace_definition,
    store_definition,
)
from intarsia.op.operator_facts import OpPatternKind
from intarsia.op.operator_signature import OperatorSignature
from intarsia.op.opset import OPSETS
from intarsia.support.errors import UsageError

Function = TypeVar("Function", bound=Callable[..., Any])

_NAME: Final = re.compile(r"([A-Za-z][\w.]*)::([A-Za-z]\w*)")


def register_operator(
    name: str,
    infer: Callable[..., Any],
    compute: Callable[..., Any] | None,
    reference: Callable[..., Any],
    *,
    outputs: Sequence[str] = ("output",),
    toolchains: Sequence[str] = (),
    fusion: OpPatternKind = OpPatternKind.OPAQUE,
    batched: bool = False,
) -> OperatorDefinition:
    """Register an operator: models that use it can be imported, judged, tuned and saved.

    All three functions take the operator's inputs by position, and its attributes by keyword. The signature
    of `reference` declares both: positional parameters are inputs, those with the default None optional ones;
    keyword-only parameters are attributes (int, float, str, or tuples of these), with their defaults.

    Args:
        name: Domain and name, such as "acme::GatedMLP".
        infer: Function from a `TensorType` for each input, None for one that is left out, to the `TensorType`
            of the output, or a tuple with one for each output. It raises if types do not fit.
        compute: Function from tensors of `intarsia.native.te` to the tensor of the output, or a sequence with
            one for each output; native generates kernels from it. It raises for forms that it does not cover.
            None: the operator has no native kernel.
        reference: Function from NumPy arrays to the result, or a tuple of results: the definition of the
            operator, by which candidates are judged. It may compute in a wider type.
        outputs: Names of the outputs.
        toolchains: Names of other toolchains that have a kernel for it.
        fusion: Fusion kind; with the default, OPAQUE, no other operator is fused with it.
        batched: Whether row i of each output depends on row i of the first input only, and on all of the
            other inputs, rows being the first axis. Native then has kernels for any number of rows.

    Raises:
        UsageError: The name is not of that form, belongs to a domain of ONNX or of another package, or to an
            operator that is registered already; or the signature of `reference` is none of an operator.
    """
    definition = define_operator(
        name,
        infer,
        compute,
        reference,
        outputs=outputs,
        toolchains=toolchains,
        fusion=fusion,
        batched=batched,
    )
    if _is_same_source(registered_definition(name), definition):  # a cell of a notebook that was run again
        return replace_definition(name, definition)
    return store_definition(name, definition)


def define_operator(
    name: str,
    infer: Callable[..., Any],
    compute: Callable[..., Any] | None,
    reference: Callable[..., Any],
    *,
    outputs: Sequence[str] = ("output",),
    toolchains: Sequence[str] = (),
    fusion: OpPatternKind = OpPatternKind.OPAQUE,
    batched: bool = False,
) -> OperatorDefinition:
    """Return the definition of an operator without registering it.

    Arguments are those of `register_operator`.

    Raises:
        UsageError: See `register_operator`.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise UsageError(
            f"an operator cannot be named {name!r}", help='write domain and name, such as "acme::GatedMLP"'
        )
    domain, short = match.groups()
    if domain in OPSETS or is_opaque_domain(domain):
        raise UsageError(
            f"operator {name!r} cannot be registered: the domain {domain!r} is taken",
            help="choose a domain of your own, such as the name of your package",
        )
    if not outputs:
        raise UsageError(f"operator {name!r} has no outputs, expected one at least")
    return OperatorDefinition(
        domain,
        short,
        OperatorSignature.of(reference, name),
        tuple(outputs),
        infer,
        compute,
        reference,
        frozenset({*toolchains, *([NATIVE] if compute is not None else [])}),
        fusion,
        batched,
    )


def operator(
    name: str,
    *,
    compute: Callable[..., Any] | None = None,
    infer: Callable[..., Any] | None = None,
    outputs: Sequence[str] = ("output",),
    toolchains: Sequence[str] = (),
    fusion: OpPatternKind = OpPatternKind.OPAQUE,
    batched: bool = False,
) -> Callable[[Function], Function]:
    """Register the decorated function as the reference of an operator.

    Args:
        name: Domain and name, such as "acme::GatedMLP".
        compute: Compute rule; see `register_operator`.
        infer: Type inference; without one, the output has the type of the first input.
        outputs: Names of the outputs.
        toolchains: Names of other toolchains that have a kernel for it.
        fusion: Fusion kind.
        batched: Whether rows of the first input are computed by themselves.

    Raises:
        UsageError: See `register_operator`.
    """

    def register(reference: Function) -> Function:
        register_operator(
            name,
            infer or first_input_type,
            compute,
            reference,
            outputs=outputs,
            toolchains=toolchains,
            fusion=fusion,
            batched=batched,
        )
        return reference

    return register


def first_input_type(first: Type, *_: Type | None, **__: object) -> Type:
    """Return the type of the first input."""
    return first


def _is_same_source(before: OperatorDefinition | None, after: OperatorDefinition) -> bool:
    """Whether two definitions stem from the same function of the same module."""
    if before is None:
        return False
    old, new = before.reference, after.reference
    names = [(getattr(item, "__module__", None), getattr(item, "__qualname__", None)) for item in (old, new)]
    return names[0] == names[1] and names[0] != (None, None)
