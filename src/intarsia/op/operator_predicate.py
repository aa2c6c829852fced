"""The attribute `target.<toolchain>` of operators: whether a toolchain can run a call (DESIGN section 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from intarsia.ir import Call
from intarsia.support.registry import Registry

OperatorPredicate: TypeAlias = Callable[[Call], bool]
"""Whether offering a call of an operator to the toolchain is worthwhile; quick, and without side effects."""


class HasPredicate(Protocol):
    """The methods of a toolchain's class that operator predicates call: see `toolchain.protocol`."""

    def supports(self, call: Call) -> bool:
        """The operator predicate."""


_PREDICATES: Registry[OperatorPredicate] = Registry("operator predicate")
_CLASSES: Registry[Callable[[], HasPredicate]] = Registry("toolchain", group="intarsia.toolchains")

register_operator_predicate: Callable[[str, OperatorPredicate], OperatorPredicate] = _PREDICATES.register
"""Say what a toolchain can run, instead of the method `supports` of its class.

Raises:
    UsageError: The toolchain has another predicate already.
"""

holding_operator_predicate = _PREDICATES.holding
"""Register a predicate for the duration of a `with` block, even if there is one (tests, experiments)."""


def takes_control_flow(toolchain: str) -> bool:
    """Whether a toolchain compiles functions with an If, Loop or Scan as a whole.

    That is its attribute `takes_control_flow`, true where it has none. For the others the program's control
    flow is interpreted, and they compile what stands in branches and bodies.
    """
    return bool(getattr(_CLASSES[toolchain], "takes_control_flow", True)) if toolchain in _CLASSES else True


def operator_predicate(toolchain: str) -> OperatorPredicate:
    """The predicate of a toolchain: the registered one, else `supports` of the class that its package names.

    The toolchain need not be usable here: its engine is not loaded.

    Raises:
        UsageError: No toolchain has that name; the nearest names are listed.
    """
    return _PREDICATES[toolchain] if toolchain in _PREDICATES else _CLASSES[toolchain]().supports
