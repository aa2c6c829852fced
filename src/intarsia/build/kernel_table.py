"""The kernels of a program; equal functions for equal targets are compiled once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial

from intarsia.ir import Function, IRModule, structural_digest, with_fields
from intarsia.runtime.devices.device import Device
from intarsia.runtime.kernel import Kernel
from intarsia.support.errors import IntarsiaError, UsageError
from intarsia.target import Target
from intarsia.target.reference import REFERENCE
from intarsia.toolchain import toolchain

COMPILER = "Compiler"
TARGET = "target"
SYMBOL = "global_symbol"


def is_marked(function: Function) -> bool:
    """Whether the program gives the function to a toolchain."""
    return COMPILER in function.attrs


def marked_target(function: Function) -> Target:
    """The target of a marked function: its attribute `target`, or that of its toolchain without options.

    Raises:
        UsageError: The two attributes name different toolchains.
    """
    compiler = str(function.attrs[COMPILER])
    if TARGET not in function.attrs:
        return Target.for_toolchain(compiler)
    target = Target(str(function.attrs[TARGET]))
    if target.toolchain != compiler:
        raise UsageError(
            f'a function is marked Compiler="{compiler}" but target="{target}", expected one toolchain'
        )
    return target


@dataclass(slots=True)
class _Numbered:
    """A function that has its number; its digest is computed when it is first compared."""

    function: Function
    number: int
    digest: str = ""


@dataclass(slots=True)
class FunctionTable(ABC):
    """Numbers functions; equal ones for equal targets on one device have one number.

    Attributes:
        module: Global functions that they may call.
        names: A name for each number.
    """

    module: IRModule
    names: list[str] = field(default_factory=list)
    _similar: defaultdict[tuple[str, str, int], list[_Numbered]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def number(self, function: Function, target: Target, name: str, device: int = 0) -> int:
        """The number of the function for that target on that device, a new one if there is none.

        Raises:
            CompileError: The toolchain refuses the function.
            MissingToolchainError: The toolchain is not usable here.
        """
        similar = self._similar[str(target), str(function.checked_type), device]
        for other in similar:
            if other.function is function:
                return other.number
        digest = ""
        if similar:
            digest = _digest(function)
            for other in similar:
                other.digest = other.digest or _digest(other.function)
                if other.digest == digest:
                    return other.number
        similar.append(_Numbered(function, len(self.names), digest))
        self._add(function, target, name, device)
        self.names.append(name)
        return len(self.names) - 1

    @abstractmethod
    def _add(self, function: Function, target: Target, name: str, device: int) -> None:
        """Take in a function that has the next number."""


@dataclass(slots=True)
class KernelTable(FunctionTable):
    """Compiles functions as they get their numbers, each in the thread of its device if there are devices.

    Attributes:
        kernels: The kernels by number.
        devices: Devices of the plan.
    """

    kernels: list[Kernel] = field(default_factory=list)
    devices: Sequence[Device] = ()

    def _add(self, function: Function, target: Target, name: str, device: int) -> None:
        try:
            compiler = toolchain(target.toolchain or REFERENCE)
            make = partial(compiler.compile, function, target, self.module)
            # A device's thread has no pass context of its own: it takes that of this thread.
            kernel = (
                self.devices[device].worker.call(partial(copy_context().run, make))
                if self.devices
                else make()
            )
        except IntarsiaError as error:
            error.add_note(f"in kernel {name}")
            raise
        self.kernels.append(kernel)


def _digest(function: Function) -> str:
    """Of the function without its name."""
    return structural_digest(with_fields(function, attrs=function.attrs.updated(**{SYMBOL: None})))
