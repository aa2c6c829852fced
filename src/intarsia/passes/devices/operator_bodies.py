"""What stands in the body of an operator (Loop, Scan, SequenceMap) is evaluated where the operator is.

The body is a part of the operator's kernel, so that no copy can stand in it. What depends on none of its
variables is evaluated around the operator, and may be elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from intarsia.ir import Expr, Function, GlobalVar, IRModule, children, post_order
from intarsia.ir.scope import binders
from intarsia.passes.devices.device_domains import leaves
from intarsia.passes.devices.device_flow import DeviceFlow


@dataclass(slots=True)
class OperatorBodies:
    """The bodies met in a program, each with the domain of its operator."""

    _bodies: list[tuple[Function, int]] = field(default_factory=list)

    def add(self, body: Function, place: int) -> None:
        """An operator with a body."""
        self._bodies.append((body, place))

    def pin(self, flow: DeviceFlow, mod: IRModule) -> None:
        """Put what the bodies compute, and the functions they call, where their operators are.

        Raises:
            DeviceConflictError: An annotation inside says otherwise.
        """
        waiting: list[tuple[Sequence[Expr], int]] = []
        waiting += ((_dependent(body), domain) for body, domain in self._bodies)
        functions = {var.name: function for var, function in mod.graph_functions.items()}
        pinned: set[str] = set()
        while waiting:
            inside, domain = waiting.pop()
            for expr in inside:
                for leaf in leaves(flow.of[expr]) if expr in flow.of else ():
                    flow.domains.join(domain, leaf)
            called = {
                child.name for expr in inside for child in children(expr) if isinstance(child, GlobalVar)
            }
            for name in sorted(called & functions.keys() - pinned):
                pinned.add(name)
                waiting.append((tuple(post_order(functions[name])), domain))


def _dependent(body: Function) -> list[Expr]:
    """The body, and what in it depends on a variable that is bound in it, in one order for all runs."""
    order = list(post_order(body))
    dependent: set[Expr] = {body}
    for expr in order:
        dependent.update(binders(expr))
    for expr in order:
        if any(child in dependent for child in children(expr)):
            dependent.add(expr)
    return [expr for expr in order if expr in dependent]
