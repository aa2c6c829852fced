"""Loops that threads share where a call has enough work, and that the calling thread runs alone otherwise.

A kernel for any size is given its sizes with each call, so it chooses then:

    for parallel group in most count select(work[] >= least, count[], 1)
      for number in most count select(work[] >= least, 1, count[])
        ... group + number ...

A parallel loop of one iteration wakes no thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from intarsia.ir import DType
from intarsia.ir.prim_func import For, ForKind, LoopVar, Statement
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.convolution_order import share_of_time
from intarsia.native.schedule.schedule_task import least_shared_work
from intarsia.native.te import Expression
from intarsia.native.te.expression import literal
from intarsia.native.te.functions import select
from intarsia.native.tir.rewriting import Replacement
from intarsia.support.free_names import NameSupply

_EVEN: Final = 0.75
"""Minimum utilisation of threads at which few equal shares are better than a barrier for each of them."""

InsideWriter: TypeAlias = Callable[[Statement, Expression | None], Statement]
"""Function from a statement, and work to be shared if any, to loops around the statement."""


@dataclass(frozen=True, slots=True)
class SharedLoops:
    """How loops are shared among threads.

    Attributes:
        threads: Number of threads; with one no loop is parallel.
        least: Number of elements of work from which threads share a loop.
    """

    threads: int
    least: int

    @staticmethod
    def of(isa: Isa, threads: int) -> SharedLoops:
        """Return how loops are shared on a machine."""
        return SharedLoops(threads, least_shared_work(isa))

    def is_even(self, count: int) -> bool:
        """Return whether several threads have nearly equal shares of some iterations."""
        return self.threads > 1 and share_of_time(count, self.threads) >= _EVEN

    def planes(
        self, statement: Statement, variables: NameSupply, work: Expression, inside: InsideWriter
    ) -> Statement:
        """Return a statement, a loop over planes or what computes a single one, around other loops.

        Threads share the planes; the loops inside if the planes are no even shares.

        Args:
            statement: The statement.
            variables: Names of all counters.
            work: Number of elements that it computes.
            inside: Function from what computes a plane, and work to be shared, to loops around it.
        """
        if not isinstance(statement, For):
            return inside(statement, work)
        if not self.is_even(statement.extent):
            return replace(statement, body=inside(statement.body, work // statement.extent))
        var, body = statement.var, inside(statement.body, None)

        def plane(at: Expression) -> Statement:
            return Replacement(counters={var: at.scalar}).statement(body)

        names = variables.fresh("group"), variables.fresh(var.name)
        return self.loop(names, statement.extent, statement.extent, work, plane)

    def loop(
        self,
        names: tuple[str, str],
        most: int,
        count: Expression | int,
        work: Expression | None,
        body: Callable[[Expression], Statement],
    ) -> For:
        """Return a loop that threads share if it has enough work.

        Args:
            names: Names of the counters of the parallel loop and of the one that a thread runs alone.
            most: Maximum number of iterations.
            count: Number of iterations.
            work: Number of elements that all iterations compute; None for a loop in a parallel one.
            body: Function from the number of an iteration to its statement.
        """
        group, number = map(LoopVar, names)
        total = literal(count, DType.INT64) if isinstance(count, int) else count
        if self.threads == 1 or work is None:
            return For(number, most, body(Expression(number)), ForKind.SERIAL, total.scalar)
        is_shared = work >= self.least
        inside = body(Expression(group) + Expression(number))
        inside = For(number, most, inside, ForKind.SERIAL, select(is_shared, 1, total).scalar)
        return For(group, most, inside, ForKind.PARALLEL, select(is_shared, total, 1).scalar)
