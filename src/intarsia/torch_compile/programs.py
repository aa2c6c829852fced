"""Executables of a graph's program: remembered, tuned, or built by the first toolchain that is right."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from intarsia.build import build
from intarsia.driver.accuracy import Accuracy
from intarsia.driver.baselines import baseline_targets
from intarsia.driver.tune import tune
from intarsia.driver.tuning_history import TuningHistory
from intarsia.ir import IRModule
from intarsia.measure.candidate_kind import WHOLE, instantiate
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Candidate
from intarsia.measure.user_database import NO_DATABASE, VARIABLE, open_database
from intarsia.runtime.executable import Executable
from intarsia.support.callbacks import silent
from intarsia.support.errors import CompileError, DatabaseError, IntarsiaError, OutputError, UsageError
from intarsia.target import Target
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.toolchain.package import exception_text
from intarsia.toolchain.this_host import this_host
from intarsia.torch_compile.fallback import warn
from intarsia.torch_compile.first_call import FirstCall, FirstCallCheck
from intarsia.torch_compile.options import CompileOptions


@dataclass
class Programs:
    """Builds the executables of one graph; the first one decides how the others are built.

    Attributes:
        options: Options of the backend.
    """

    options: CompileOptions
    _recipe: tuple[Target, Candidate] | None = field(default=None, init=False)

    def build_first(self, module: IRModule, call: FirstCall) -> Executable:
        """Build the executable of a graph's first call, and verify its results.

        Args:
            module: The program.
            call: The first call.

        Raises:
            CompileError: No toolchain takes the program, or none computes it right.
        """
        check = FirstCallCheck(module, call) if self.options.verify else None
        reasons: list[str] = []
        for target, candidate in self._recipes(module, call, reasons):
            name = str(target.toolchain) if candidate is WHOLE else "the tuned program"
            try:
                executable = build(instantiate(module, target, candidate))
                if check is not None:
                    check.refuse_wrong(executable)
            except Exception as error:  # engines raise whatever they do
                problem = error.problem if isinstance(error, IntarsiaError) else exception_text(error)
                reasons.append(f"{name}: {problem}")
                continue
            self._recipe = target, candidate
            return executable
        raise CompileError(f"no toolchain compiles it: {'; '.join(reasons)}"[:600])

    def build_again(self, module: IRModule) -> Executable:
        """Build the program with other weights, or with weights as inputs, as the first one was built.

        Raises:
            CompileError: No toolchain takes it.
        """
        recipes = [] if self._recipe is None else [self._recipe]
        reasons = []
        for target, candidate in [*recipes, *((target, WHOLE) for target in self.options.targets())]:
            try:
                return build(instantiate(module, target, candidate))
            except Exception as error:  # engines raise whatever they do
                reasons.append(f"{target.toolchain}: {exception_text(error)}")
        raise CompileError(f"no toolchain compiles it: {'; '.join(reasons)}"[:600])

    def _recipes(
        self, module: IRModule, call: FirstCall, reasons: list[str]
    ) -> Iterator[tuple[Target, Candidate]]:
        """Ways to build a program, the most promising first."""
        with _database(self.options) as database:
            if database is not None:
                yield from self._remembered(module, database)
            if self.options.budget is not None:
                yield from self._tuned(module, call, database, reasons)
        for target in self.options.targets():
            yield target, WHOLE

    def _remembered(self, module: IRModule, database: Database) -> Iterator[tuple[Target, Candidate]]:
        history = TuningHistory(database, this_host(), self._tuning_targets(), Accuracy(False, None))
        try:
            plan = history.plan_of(module, silent)
        except (UsageError, DatabaseError):  # no earlier run, or a database that cannot be read
            return
        yield plan.whole or REFERENCE_TARGET, plan.candidate

    def _tuned(
        self, module: IRModule, call: FirstCall, database: Database | None, reasons: list[str]
    ) -> Iterator[tuple[Target, Candidate]]:
        assert self.options.budget is not None
        try:
            result = tune(
                module,
                budget=self.options.budget,
                targets=self._tuning_targets(),
                inputs=call.inputs,
                database=database,
            )
        except IntarsiaError as error:
            reasons.append(f"tuning: {error.problem}")
            return
        result.executable.close()
        yield result.plan.whole or REFERENCE_TARGET, result.plan.candidate

    def _tuning_targets(self) -> tuple[Target, ...]:
        """The targets that `tune` compares by default, so that results of it are shared."""
        given = None if self.options.toolchains is None else self.options.targets()
        return baseline_targets(given, self.options.threads)


@contextmanager
def _database(options: CompileOptions) -> Iterator[Database | None]:
    """Open the database that the options name; None where there is none, or none is needed."""
    if options.database is False:
        yield None
        return
    location = options.database if isinstance(options.database, str) else os.environ.get(VARIABLE)
    if location == NO_DATABASE:
        yield None
        return
    try:
        opened = open_database(location, create=options.budget is not None)
    except (DatabaseError, OutputError) as error:
        if options.budget is not None or location is not None:
            warn(f"measurements are not kept: {error.problem}", error.help)
        yield None
        return
    with opened:
        yield opened
