"""Opaque operators: calls of operators that ONNX does not define (DESIGN section 14.5).

An opaque operator belongs to a domain that a package declares: it has a schema, types that the package
infers, a value that the package computes, and the toolchains that can run it. All other toolchains leave its
calls alone; what stands around them stays free. A package declares a domain by an entry point:

    [project.entry-points."intarsia.operator_domains"]
    "com.microsoft" = "intarsia.toolchain.onnxruntime.domain:MicrosoftOperators"

Operators that are registered one by one (`op.register_operator`) make such a domain as well. Their references
define them, so that all toolchains but the judges' own may run them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy.typing as npt

from intarsia.ir import Call, Expr, IRModule, Op, Type, post_order
from intarsia.op.defined_domain import DefinedDomain
from intarsia.op.operator_definition import defined_domains, definition_of, has_definitions
from intarsia.support.errors import UnsupportedModelError
from intarsia.support.registry import Registry

if TYPE_CHECKING:
    from onnx import NodeProto
    from onnx.defs import OpSchema

Array = npt.NDArray[Any]


class OperatorDomain(Protocol):
    """What a package declares about a domain of operators.

    Attributes:
        version: Version of the domain, which exported models import.
        toolchains: Names of the toolchains that can run calls of the domain.
        judge: Source of the expected results of its calls, in words for reports.
    """

    version: int
    toolchains: frozenset[str]
    judge: str

    def obstacle(self) -> str | None:
        """Why the domain cannot be used on this machine; None if it can."""

    def schema(self, name: str) -> OpSchema | None:
        """The schema of an operator; None if the domain has no such operator."""

    def operators(self) -> Sequence[str]:
        """The names of all operators of the domain."""

    def infer(
        self, node: NodeProto, types: Sequence[Type], values: Mapping[int, Array]
    ) -> tuple[Type | None, ...]:
        """Return the types of a node's outputs.

        Args:
            node: The node, with inputs i0, i1, ... (empty where absent) and outputs o0, o1, ...
            types: The types of its inputs, by position.
            values: Inputs whose values may decide the shape of an output, by position.

        Raises:
            InvalidModelError: The node is invalid.
            UnsupportedModelError: No toolchain of the domain has a kernel for it.
        """

    def evaluate(self, node: NodeProto, types: Sequence[Type], values: Sequence[Array]) -> Sequence[Array]:
        """Compute the outputs of a node, exactly as its operator is defined.

        Args:
            node: The node, as for `infer`.
            types: The types of its inputs, by position.
            values: The values of those inputs that are present, in order.

        Raises:
            IntarsiaError: The node cannot be computed.
        """


_DOMAINS: Registry[Callable[[], OperatorDomain]] = Registry(
    "operator domain", group="intarsia.operator_domains"
)

holding_operator_domain = _DOMAINS.holding
"""Declare a domain for the duration of a `with` block, even if it is declared already."""


def is_opaque_domain(domain: str) -> bool:
    """Whether some installed package declares a domain as a whole, rather than operators one by one."""
    return bool(domain) and domain in _DOMAINS


def is_declared(domain: str) -> bool:
    """Whether some installed package declares a domain of operators, or operators of it are registered."""
    return bool(domain) and (domain in _DOMAINS or has_definitions(domain))


def _entry(domain: str) -> OperatorDomain:
    """Return what is declared about a domain that is declared."""
    return _DOMAINS[domain]() if domain in _DOMAINS else DefinedDomain(domain)


def operator_domain(domain: str) -> OperatorDomain:
    """Return what is declared about a domain.

    Raises:
        UnsupportedModelError: No package declares it, or it cannot be used on this machine.
    """
    if not is_declared(domain):
        declared = ", ".join(repr(name) for name in sorted({*_DOMAINS, *defined_domains()})) or "none"
        raise UnsupportedModelError(
            f"the operator domain {domain!r} is not one of ONNX's, and no installed package declares it",
            help="install the package that registers its operators, or export the model with ONNX's own; "
            f"declared domains: {declared}",
        )
    entry = _entry(domain)
    obstacle = entry.obstacle()
    if obstacle is not None:
        raise UnsupportedModelError(
            f"the operator domain {domain!r} cannot be used here: {obstacle}",
            help=f"install a toolchain that runs its operators: {', '.join(sorted(entry.toolchains))}",
        )
    return entry


def declared_version(domain: str) -> int:
    """The version of a domain that a package declares, whether it can be used on this machine or not.

    Raises:
        UnsupportedModelError: No package declares it.
    """
    return _entry(domain).version if is_declared(domain) else operator_domain(domain).version


def usable_domain(domain: str) -> OperatorDomain | None:
    """What is declared about a domain; None if nothing is, or it cannot be used on this machine."""
    entry = _entry(domain) if is_declared(domain) else None
    return entry if entry is not None and entry.obstacle() is None else None


def declared_toolchains(domain: str, name: str) -> frozenset[str]:
    """Names of the toolchains that can run an operator of a domain; none if it is not declared."""
    if is_opaque_domain(domain):
        return _entry(domain).toolchains
    definition = definition_of(domain, name)
    return frozenset() if definition is None else definition.toolchains


def is_defined(expr: Expr) -> bool:
    """Whether an expression is a call of a registered operator, which its reference function defines."""
    return is_opaque(expr) and isinstance(expr, Call) and not is_opaque_domain(_domain(expr))


@dataclass(frozen=True, slots=True)
class OpaqueOperator:
    """An opaque operator that a program uses.

    Attributes:
        name: The operator with its domain, as in "com.microsoft::BifurcationDetector".
        calls: Number of its calls.
        toolchains: Names of the toolchains that can run it, sorted.
        judge: Source of its expected results, in words.
        is_defined: Whether it is registered with a reference function, which every judge calls for it.
    """

    name: str
    calls: int
    toolchains: tuple[str, ...]
    judge: str
    is_defined: bool = False


def is_opaque(expr: Expr) -> bool:
    """Whether an expression is a call of an operator that ONNX does not define and a package declares."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and is_declared(expr.op.domain)


def opaque_operators(module: IRModule) -> tuple[OpaqueOperator, ...]:
    """Return the opaque operators of a module's functions, sorted by name."""
    counts: Counter[tuple[str, str]] = Counter()
    for function in module.graph_functions.values():
        for expr in post_order(function):
            if is_opaque(expr):
                assert isinstance(expr, Call)
                assert isinstance(expr.op, Op)
                counts[expr.op.domain, expr.op.name] += 1
    uses = []
    for (domain, name), count in sorted(counts.items()):
        toolchains = tuple(sorted(declared_toolchains(domain, name)))
        is_registered = not is_opaque_domain(domain)
        uses.append(
            OpaqueOperator(f"{domain}::{name}", count, toolchains, _entry(domain).judge, is_registered)
        )
    return tuple(uses)


def _domain(call: Call) -> str:
    assert isinstance(call.op, Op)
    return call.op.domain
