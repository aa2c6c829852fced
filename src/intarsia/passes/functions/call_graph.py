"""Which global function refers to which: what is reachable, what is recursive, callees before callers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from intarsia.ir import Function, GlobalVar, IRModule, post_order


@dataclass(frozen=True, slots=True)
class CallGraph:
    """The references between the functions of a module, by name; calls and other uses alike.

    Attributes:
        callees: For each function, the functions that it refers to, in order of first use.
    """

    callees: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, mod: IRModule) -> CallGraph:
        """The call graph of a module; names that it does not define are left out. Linear in the module."""
        names_here = {var.name for var in mod.functions}
        callees: dict[str, tuple[str, ...]] = {}
        for var, function in mod.functions.items():
            used = post_order(function) if isinstance(function, Function) else ()
            names = dict.fromkeys(expr.name for expr in used if isinstance(expr, GlobalVar))
            callees[var.name] = tuple(name for name in names if name in names_here)
        return cls(callees)

    def reachable(self, entries: Iterable[str]) -> frozenset[str]:
        """The entries that exist, and all that they refer to, directly or not."""
        reached: set[str] = set()
        waiting = [name for name in entries if name in self.callees]
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting.extend(self.callees[name])
        return frozenset(reached)

    def components(self) -> tuple[tuple[str, ...], ...]:
        """Functions that refer to each other in circles, together; callees before callers.

        Tarjan's strongly connected components (SIAM J. Computing 1972), with a stack of its own.
        """
        search = _Search(self.callees)
        for name in self.callees:
            if name not in search.number:
                search.visit(name)
        return tuple(search.components)

    def callees_first(self) -> tuple[str, ...]:
        """All functions, each after those that it refers to, but for circles."""
        return tuple(name for component in self.components() for name in component)

    def recursive(self) -> frozenset[str]:
        """The functions that refer to themselves, directly or through others."""
        return frozenset(
            name
            for component in self.components()
            for name in component
            if len(component) > 1 or name in self.callees[name]
        )


class _Search:
    """One depth-first search over all functions.

    Attributes:
        number: Functions' numbers, in the order in which they were reached.
        components: Finished components.
    """

    def __init__(self, callees: Mapping[str, tuple[str, ...]]) -> None:
        self.number: dict[str, int] = {}
        self.components: list[tuple[str, ...]] = []
        self._callees = callees
        self._lowest: dict[str, int] = {}
        self._open: dict[str, None] = {}

    def visit(self, root: str) -> None:
        """Search from a function that was not reached yet."""
        path: list[tuple[str, Iterator[str]]] = [self._enter(root)]
        while path:
            name, rest = path[-1]
            callee = next(rest, None)
            if callee is None:
                path.pop()
                self._leave(name)
                if path:
                    self._lower(path[-1][0], self._lowest[name])
            elif callee not in self.number:
                path.append(self._enter(callee))
            elif callee in self._open:
                self._lower(name, self.number[callee])

    def _enter(self, name: str) -> tuple[str, Iterator[str]]:
        self.number[name] = self._lowest[name] = len(self.number)
        self._open[name] = None
        return name, iter(self._callees[name])

    def _lower(self, name: str, number: int) -> None:
        self._lowest[name] = min(self._lowest[name], number)

    def _leave(self, name: str) -> None:
        if self._lowest[name] == self.number[name]:
            component: list[str] = []
            while not component or component[-1] != name:
                component.append(self._open.popitem()[0])
            self.components.append(tuple(reversed(component)))
