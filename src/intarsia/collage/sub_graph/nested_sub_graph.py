"""A part of a sub-graph that is to be a function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from intarsia.ir import Attrs

if TYPE_CHECKING:
    from intarsia.collage.sub_graph.sub_graph import SubGraph

COMPOSITE: Final = "Composite"


@dataclass(frozen=True, slots=True)
class NestedSubGraph:
    """A sub-graph and the attributes of the function that it becomes when the program is rewritten.

    Until then nothing is built: sub-graphs are sets, joined and compared by the thousand.

    Attributes:
        sub_graph: The body; it may have nested sub-graphs itself.
        attrs: Attributes of the function: Composite, Primitive, Compiler, target ...
    """

    sub_graph: SubGraph
    attrs: Attrs

    def can_union(self, other: NestedSubGraph) -> bool:
        """Whether two of them may be one function: their attributes agree, and name no Composite."""
        return COMPOSITE not in self.attrs and self.attrs == other.attrs

    def disjoint_union(self, other: NestedSubGraph) -> NestedSubGraph:
        """Both as one function.

        Raises:
            ValueError: They may not be one, or they overlap.
        """
        if not self.can_union(other):
            raise ValueError(f"functions with {self.attrs} and {other.attrs} are not one")
        return NestedSubGraph(self.sub_graph.disjoint_union(other.sub_graph), self.attrs)

    def __str__(self) -> str:
        attrs = ", ".join(f"{name}={value!r}" for name, value in self.attrs.items())
        return f"{self.sub_graph}[{attrs}]"
