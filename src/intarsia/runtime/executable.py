"""The executable: a compiled program that is called like a function."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from typing import Any, Self

from intarsia.runtime.artifact_format import ArtifactFormat
from intarsia.runtime.artifact_save import save_artifact
from intarsia.runtime.bound_call import BoundCall, BoundSteps
from intarsia.runtime.clones import clone_parts
from intarsia.runtime.contents import Contents
from intarsia.runtime.counting_runs import with_counters
from intarsia.runtime.devices.device import Device
from intarsia.runtime.devices.open_devices import devices_of
from intarsia.runtime.entry_points import EntryPoints
from intarsia.runtime.input_check import InputCheck, refuse_converted
from intarsia.runtime.kernel import Array, ClosableKernel, Kernel, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.largest_call import expect_largest_call
from intarsia.runtime.output_check import accept_outputs, copy_results, new_outputs, structured
from intarsia.runtime.plan import ExecutionPlan, TensorInfo
from intarsia.runtime.profile import Nanoseconds, Profile
from intarsia.runtime.profiling_runs import ProfilingRuns
from intarsia.runtime.provenance import Provenance
from intarsia.runtime.runners import Runner, new_runner, runner_maker
from intarsia.runtime.self_test import SelfTest, largest_error
from intarsia.runtime.tensor_info import info_text
from intarsia.runtime.timeline import Recorder, Timeline
from intarsia.runtime.token_sequence import TokenSequence
from intarsia.support.closed_on_exit import ClosedOnExit
from intarsia.support.errors import UsageError
from intarsia.support.forks import reset_in_children


class Executable(ClosedOnExit):
    """A compiled program, called like a function on arrays.

    It is safe to call from several threads: the calls run one after the other, and those of a `clone` beside
    them. As a context manager it closes itself. It is pickled and copied as the artifact that `save` would
    write; a copy has kernels and memory of its own.

    Args:
        plan: Steps of the program in their order.
        kernels: Compiled functions, by the numbers that the plan uses.
        constants: Arrays that the plan's blocks read directly.
        provenance: Origin of the program, or a function that returns it on first use.
        kernel_names: A name for each kernel, for errors and profiles.
        self_test: Inputs with their right outputs, saved in the artifact.
        explanation: Reasons for the build as text for `intarsia explain`, saved in the artifact.
        devices: Devices of the plan, with the threads that made the kernels; opened here if not given.
    """

    def __init__(
        self,
        plan: ExecutionPlan,
        kernels: Sequence[Kernel],
        constants: Sequence[Array] = (),
        provenance: Provenance | Callable[[], Provenance] | None = None,
        kernel_names: Sequence[str] | None = None,
        self_test: SelfTest | None = None,
        explanation: str | None = None,
        devices: Sequence[Device] | None = None,
    ) -> None:
        parts = plan, kernels, constants, provenance, kernel_names, self_test, explanation
        self.contents = Contents.of(*parts)
        self._named = list(map(NamedKernel, kernels, self.contents.kernel_names))
        self._check = InputCheck(plan.inputs, plan.dim_ranges)
        self._devices = devices_of(plan, kernels) if devices is None else tuple(devices)
        self._entries = self._new_entries()
        expect_largest_call(plan, kernels)
        self._lock = threading.Lock()
        self._is_closed = self._is_of_parent = False
        reset_in_children(self)

    def reset_in_child(self) -> None:
        """Take a new lock and new buffers in a forked child: a call of the parent may hold the old ones."""
        self._lock = threading.Lock()
        self._is_of_parent = True

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """Name and type of each input."""
        return self.contents.plan.inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """Name and type of each output."""
        return self.contents.plan.outputs

    @property
    def plan(self) -> ExecutionPlan:
        """The steps of the program in their order."""
        return self.contents.plan

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The compiled functions; a UsageError once it is closed."""
        self._refuse_if_closed()
        return self.contents.kernels

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """A name for each kernel."""
        return self.contents.kernel_names

    @property
    def saved_test(self) -> SelfTest | None:
        """The inputs and right outputs that `self_test` uses, if any; a UsageError once it is closed."""
        self._refuse_if_closed()
        return self.contents.self_test

    @cached_property
    def provenance(self) -> Provenance:
        """The origin of the program; a UsageError once it is closed."""
        self._refuse_if_closed()
        return self.contents.make_provenance()

    @property
    def program(self) -> str:
        """Text of the program that was built."""
        return self.provenance.program

    def __call__(self, /, *args: object, **named: object) -> Any:
        """Run the program.

        Args:
            *args: Inputs in order: NumPy arrays or anything with `__dlpack__`; or a mapping of all by name.
            **named: Inputs by name.

        Returns:
            An array, or a tuple of results nested as the program's result is; they belong to the caller.

        Raises:
            InputError: An input has a wrong name, element type or shape.
            ExecutionError: A kernel failed.
            UsageError: It is closed.
        """
        return structured(self.contents.plan.output_structure, self.run_flat(*args, **named))

    def run_flat(self, /, *args: object, **named: object) -> list[Value]:
        """Run the program and return its results as a flat list, in the order of `outputs`."""
        inputs = self._check.accept(args, named)
        with self._lock:
            self._prepare()
            return self._entries.of(inputs).runner.run(inputs)

    def run_series(self, calls: Sequence[Sequence[object]]) -> list[list[Value]]:
        """Run several calls in turn, a small native program at once; return the results of each.

        Args:
            calls: Inputs of each call, in order; one call or more.
        """
        checked = [self._check.accept(args, {}) for args in calls]
        with self._lock:
            self._prepare()
            return self._entries.run_series(checked)

    @property
    def has_series(self) -> bool:
        """Whether `run_series` takes less time than as many calls."""
        return not self._is_closed and self._entries.has_series

    def run_into(
        self,
        inputs: Sequence[object] | Mapping[str, object],
        outputs: Sequence[Array] | Mapping[str, Array],
    ) -> None:
        """Run the program and write its results into the caller's buffers.

        Args:
            inputs: Inputs in order or by name, as in a call.
            outputs: One writeable C-contiguous array for each of `outputs`, in order or by name, of its
                element type and shape, sharing memory with no other one and no input.

        Raises:
            InputError: An input or a buffer does not fit.
            ExecutionError: A kernel failed.
        """
        args, named = ((), inputs) if isinstance(inputs, Mapping) else (inputs, {})
        buffers = accept_outputs(self.outputs, outputs, checked := self._check.accept(args, named))
        with self._lock:
            self._prepare()
            results = self._entries.of(checked).runner.run_into(checked, buffers)
            copy_results(self.outputs, results, buffers)

    def bind(
        self,
        inputs: Sequence[object] | Mapping[str, object],
        outputs: Sequence[Array] | Mapping[str, Array] | None = None,
    ) -> BoundCall:
        """Check and bind arrays once, for calls that find new data in the same memory.

        A call of the result of a native program takes 2 us besides the kernels, one of the executable 12.

        Args:
            inputs: Inputs in order or by name, as in a call; arrays that need no conversion.
            outputs: Buffers for the results, as for `run_into`; new ones if not given.

        Raises:
            InputError: An input or a buffer does not fit, an input would have to be converted, or an output
                has no shape of its own to allocate a buffer for.
            UsageError: It is closed.
        """
        args, named = ((), inputs) if isinstance(inputs, Mapping) else (inputs, {})
        checked = self._check.accept(args, named)
        given = [named[info.name] for info in self.inputs] if named else args
        refuse_converted(self.inputs, given, checked)
        with self._lock:
            self._prepare()
            infos = self._entries.of(checked).plan.outputs
            buffers = accept_outputs(infos, new_outputs(infos) if outputs is None else outputs, checked)
            steps = BoundSteps(self.outputs, checked, buffers, self._entries)

        def run() -> None:
            with self._lock:
                self._prepare()
                steps.run(self._entries)

        return BoundCall(run, buffers)

    def clone(self, threads: int | None = None) -> Executable:
        """Return an executable on the same weights and code, with memory of its own, to be called meanwhile.

        Args:
            threads: Number of threads of its kernels; None for the threads of this one's, which they share.

        Raises:
            CompileError, UsageError: A toolchain cannot run a kernel on so many threads; it is closed.
        """
        return self.clones(1, threads)[0]

    def clones(self, count: int, threads: int | None = None) -> list[Executable]:
        """As `clone`, several at once: only those share what an engine divides among its streams."""
        self._refuse_if_closed()
        return [Executable(**parts) for parts in clone_parts(self.contents, count, threads)]

    def start_sequence(self, batch: int = 1) -> TokenSequence:
        """Start a sequence of tokens, which keeps the cache of the program between calls.

        Args:
            batch: Number of texts that are read side by side.

        Raises:
            UsageError: The program has no cache, or the executable is closed.
        """
        self._refuse_if_closed()
        return TokenSequence(self, batch)

    def profile(
        self,
        /,
        *args: object,
        repeats: int = 20,
        warmup: int = 3,
        clock: Nanoseconds = time.perf_counter_ns,
        inside: bool = True,
        counters: bool = False,
        **named: object,
    ) -> Profile:
        """Time every kernel over several runs of the program on the same inputs.

        Toolchains report the kernels inside their engines. The first profile measures the machine's peaks.

        Args:
            *args: Inputs in order.
            repeats: Number of runs that are timed, 1 or more: as many with the profilers as without.
            warmup: Number of runs before them.
            clock: Function that returns the time in nanoseconds.
            inside: Whether engines are profiled; else there is one row for each kernel of the plan.
            counters: Whether hardware counters are read, in runs of their own; a note says why they cannot.
            **named: Inputs by name.

        Raises:
            UsageError: `repeats` is not positive, or it is closed.
            InputError: An input does not fit.
            ExecutionError: A kernel failed.
        """
        if repeats < 1:
            raise UsageError(f"repeats is {repeats}, expected 1 or more")
        inputs = self._check.accept(args, named)
        with self._lock:
            self._prepare()
            entry = self._entries.of(inputs)
            runs = ProfilingRuns(entry.plan, self._named, clock, inside=inside)
            kernels = runs.kernels_for(is_recorded=not self._devices)
            new = partial(self._new_runner, entry.plan)
            run = partial(new(kernels, runs.recorder).run, inputs)
            profile = runs.profile(run, partial(entry.runner.run, inputs), repeats, warmup)
            return with_counters(profile, self._named, new, inputs) if counters else profile

    def trace(self, /, *args: object, clock: Nanoseconds = time.perf_counter_ns, **named: object) -> Timeline:
        """Run the program once and record the start, end and device of each step.

        Args:
            *args: Inputs in order.
            clock: Function that returns the time in nanoseconds.
            **named: Inputs by name.

        Raises:
            InputError: An input does not fit.
            ExecutionError: A kernel failed.
            UsageError: It is closed.
        """
        inputs = self._check.accept(args, named)
        with self._lock:
            self._prepare()
            plan = self._entries.of(inputs).plan
            recorder = Recorder(plan, self._named, clock)
            kernels = self._named if self._devices else recorder.recorded_kernels()
            self._new_runner(plan, kernels, recorder).run(inputs)
            return recorder.take_timeline()

    def self_test(self) -> float:
        """Run the self test and return the largest absolute difference from its outputs.

        Raises:
            UsageError: The executable has no self test, or is closed.
            VerificationError: The outputs have other shapes or element types.
        """
        test = self.saved_test
        if test is None:
            raise UsageError("the executable has no self test", help="give one to save(path, self_test=...)")
        return largest_error(self.run_flat(*test.inputs), test.outputs)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        self_test: SelfTest | None = None,
        explanation: str | None = None,
        format: ArtifactFormat | None = None,  # noqa: A002  # the word that the field uses
    ) -> None:
        """Write the artifact: all that is needed to run the program here or on another machine.

        Args:
            path: Path of the artifact, which is replaced.
            self_test: Inputs with their right outputs; default: those of the executable.
            explanation: Reasons for the build as text; default: those of the executable.
            format: Zip file or folder; default: a folder if `path` ends with "/" or is one.

        Raises:
            OutputError: It cannot be written; then no partial artifact remains.
            UsageError: It is closed.
        """
        with self._lock:
            test = self.saved_test if self_test is None else self_test
            save_artifact(self.contents.explained(explanation), self.provenance, path, test, format)

    def close(self) -> None:
        """Release kernels, buffers and constants, after a call that is under way; closing again does nothing.

        The description of the plan stays (`inputs`, `outputs`, `plan`, `kernel_names`); any other use raises
        a UsageError.
        """
        with self._lock, ExitStack() as closing:
            if self._is_closed:
                return
            self._is_closed = True
            for device in self._devices:
                closing.callback(device.close)  # after the kernels: a stack calls the last first
            for kernel in self.contents.kernels:
                if isinstance(kernel, ClosableKernel):
                    closing.callback(kernel.close)  # each, even if another one fails
            self.contents = self.contents.released()
            self.__dict__.pop("provenance", None)
            del self._entries, self._named, self._devices

    def __enter__(self) -> Self:
        self._refuse_if_closed()
        return super().__enter__()

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(info_text, infos)) for infos in (self.inputs, self.outputs))
        count = len(self.kernel_names)
        return f"Executable(({inputs}) -> ({outputs}), {count} kernel{'' if count == 1 else 's'})"

    def _new_entries(self) -> EntryPoints:
        return EntryPoints(self.plan, runner_maker(self._named, self.contents.constants, self._devices))

    def _new_runner(
        self, plan: ExecutionPlan, kernels: Sequence[NamedKernel], recorder: Recorder | None = None
    ) -> Runner:
        return new_runner(plan, kernels, self.contents.constants, self._devices, recorder)

    def _prepare(self) -> None:
        """Raise if it is closed, and make a new runner in a forked child; the caller holds the lock."""
        self._refuse_if_closed()
        if self._is_of_parent:
            self._entries = self._new_entries()
            self._is_of_parent = False

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise UsageError("the executable is closed", help="build it or load it again")
