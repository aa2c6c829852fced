"""Operators that users and packages register: inference, compute rule and reference of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from intarsia.op.operator_facts import OpPatternKind
from intarsia.op.operator_signature import OperatorSignature
from intarsia.support.errors import UnsupportedModelError
from intarsia.support.registry import Registry

NATIVE: Final = "native"
"""Name of the toolchain that generates kernels from compute rules."""


@dataclass(frozen=True, slots=True, eq=False)
class OperatorDefinition:
    """What is registered about an operator (`register_operator`).

    Attributes:
        domain: Domain of the operator, such as "acme".
        name: Name in the domain.
        signature: Its inputs and attributes.
        outputs: Names of the outputs.
        infer: Function from the types of inputs, and attributes by keyword, to the types of the outputs.
        compute: Function from tensors of `native.te` to tensors of the outputs; None without a native kernel.
        reference: Function from arrays to arrays, which defines the operator.
        toolchains: Names of the toolchains that can run it; native is one of them if there is a compute rule.
        fusion: Fusion kind.
        batched: Whether row i of each output depends on row i of the first input only, and on the others.
    """

    domain: str
    name: str
    signature: OperatorSignature
    outputs: tuple[str, ...]
    infer: Callable[..., Any]
    compute: Callable[..., Any] | None
    reference: Callable[..., Any]
    toolchains: frozenset[str]
    fusion: OpPatternKind
    batched: bool = False

    def __str__(self) -> str:
        """The operator with its domain."""
        return f"{self.domain}::{self.name}"


_DEFINITIONS: Registry[OperatorDefinition] = Registry("operator")
_PACKAGES: Registry[object] = Registry("operator package", group="intarsia.operators")

store_definition = _DEFINITIONS.register
"""Keep a definition under its name with the domain.

Raises:
    UsageError: The operator has another definition.
"""

holding_definition = _DEFINITIONS.holding
"""Keep a definition for the duration of a `with` block, even if the operator has another one."""


def replace_definition(name: str, definition: OperatorDefinition) -> OperatorDefinition:
    """Keep a definition in place of the one that an operator has."""
    return _DEFINITIONS.replace(name, definition)


def registered_definition(name: str) -> OperatorDefinition | None:
    """Return the definition of "domain::name" in this process; no package is imported for it."""
    return _DEFINITIONS.get(name)


def registered_definitions() -> tuple[OperatorDefinition, ...]:
    """Return the definitions in this process, sorted by name."""
    return tuple(_DEFINITIONS[name] for name in _DEFINITIONS)


def has_definitions(domain: str) -> bool:
    """Whether operators of a domain are registered, in this process or by an installed package."""
    return domain in _PACKAGES or any(name.startswith(f"{domain}::") for name in _DEFINITIONS)


def defined_domains() -> tuple[str, ...]:
    """Return the domains of registered operators, sorted."""
    return tuple(sorted({*_PACKAGES, *(name.partition("::")[0] for name in _DEFINITIONS)}))


def defined_operators(domain: str) -> tuple[str, ...]:
    """Return the names of the registered operators of a domain, without it.

    Raises:
        UnsupportedModelError: The package that registers them cannot be imported.
    """
    _load_package(domain)
    prefix = f"{domain}::"
    return tuple(name.removeprefix(prefix) for name in _DEFINITIONS if name.startswith(prefix))


def definition_of(domain: str, name: str) -> OperatorDefinition | None:
    """Return the definition of an operator; None if none is registered.

    Raises:
        UnsupportedModelError: The package that registers operators of the domain cannot be imported.
    """
    if not domain:
        return None
    _load_package(domain)
    return _DEFINITIONS.get(f"{domain}::{name}")


def _load_package(domain: str) -> None:
    """Import the package that announces operators of a domain: importing it registers them."""
    if domain not in _PACKAGES:
        return
    try:
        _PACKAGES[domain]
    except Exception as error:  # foreign modules raise any exception
        raise UnsupportedModelError(
            f"the package that registers the operators of the domain {domain!r} cannot be imported: "
            f"{type(error).__name__}: {error}",
            help="repair or reinstall it",
        ) from error
