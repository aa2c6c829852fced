"""The loops of a stage."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from intarsia.native.te.iter_var import IterKind


class IteratorAnnotation(IntEnum):
    """Execution mode of a loop; the numbers are those of TVM's v0.6 log."""

    NONE = 0
    UNROLL = 1
    VECTORIZE = 2
    PARALLEL = 3
    VTHREAD = 4
    BLOCK_X = 5
    THREAD_X = 6
    BLOCK_Y = 7
    THREAD_Y = 8
    BLOCK_Z = 9
    THREAD_Z = 10
    TENSORIZE = 11

    @property
    def keyword(self) -> str:
        """Name in a printed state, and in `bind`: "parallel", "threadIdx.x" ..."""
        return _KEYWORDS[self]

    @property
    def is_thread(self) -> bool:
        """Whether the loop is bound to an axis of a thread grid."""
        return IteratorAnnotation.VTHREAD <= self <= IteratorAnnotation.THREAD_Z


_KEYWORDS = (
    *("for", "unroll", "vectorize", "parallel", "vthread"),
    *("blockIdx.x", "threadIdx.x", "blockIdx.y", "threadIdx.y", "blockIdx.z", "threadIdx.z"),
    "tensorize",
)


@dataclass(frozen=True, slots=True)
class Range:
    """The values of a loop: `extent` of them, from `minimum` on."""

    minimum: int
    extent: int

    def __str__(self) -> str:
        return f"({self.minimum},{self.extent})"


@dataclass(frozen=True, slots=True)
class Iterator:
    """A loop of a stage.

    Attributes:
        name: Unique in its stage; "i.0" and "i.1" come from a split of "i", "i@j@" from fusing "i" and "j".
        range: Values of the loop; None while unknown (a missing split length, an attached stage).
        kind: Kind of the loop: spatial, reduction, or mixed if both were fused.
        annotation: Execution mode of the loop.
        orig_iters: Original loops of a fused loop; () otherwise.
    """

    name: str
    range: Range | None
    kind: IterKind
    annotation: IteratorAnnotation = IteratorAnnotation.NONE
    orig_iters: tuple[Iterator, ...] = ()

    @property
    def extent(self) -> int | None:
        """Number of iterations, or None if unknown."""
        return None if self.range is None else self.range.extent

    def with_range(self, values: Range | None) -> Iterator:
        """Return the loop with a range; the same object if it has this range."""
        if values == self.range:
            return self
        return Iterator(self.name, values, self.kind, self.annotation, self.orig_iters)
