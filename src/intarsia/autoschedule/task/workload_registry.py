"""Registered workloads, so that a key in a log names the measured computation."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar, cast, overload

from intarsia.ir import DType
from intarsia.native.te import Tensor, placeholder
from intarsia.support.errors import UsageError

Tensors: TypeAlias = tuple[Tensor, ...]
Argument: TypeAlias = "int | float | str | bool | Tensor | Sequence[Argument] | None"
"""An argument of a workload; a tensor stands for a placeholder of its shape and element type."""
Make = TypeVar("Make", bound=Callable[..., Tensors])

TENSOR: Final = "TENSOR"
"""First item of the list that stands for a tensor in a key: `["TENSOR", [8, 8], "float32"]`."""


class WorkloadRegistry:
    """Functions from arguments to tensors, by name, and tensors by key (Ansor; seed ansor_minimum)."""

    def __init__(self) -> None:
        self._functions: dict[str, Callable[..., Tensors]] = {}
        self._tensors: dict[str, Tensors] = {}

    @overload
    def register_workload(self, function: Make, /, *, override: bool = False) -> Make: ...
    @overload
    def register_workload(self, name: str, function: Make, /, *, override: bool = False) -> Make: ...
    @overload
    def register_workload(self, name: str, /, *, override: bool = False) -> Callable[[Make], Make]: ...
    def register_workload(
        self, name: str | Make, function: Make | None = None, /, *, override: bool = False
    ) -> Make | Callable[[Make], Make]:
        """Register a function from arguments to tensors: as a decorator with or without a name, or as a call.

        @register_workload
        @register_workload("matmul", override=True)
        register_workload("matmul", function)

        Args:
            name: Name of the workload in keys; by default the name of the function.
            function: Function from arguments to tensors.
            override: Whether it replaces another workload of that name.

        Raises:
            UsageError: The name is taken.
        """
        if not isinstance(name, str):
            return self._add(str(getattr(name, "__name__", name)), name, override)
        if function is not None:
            return self._add(name, function, override)
        return lambda decorated: self._add(name, decorated, override)

    def _add(self, name: str, function: Make, override: bool) -> Make:
        if not override and self._functions.get(name, function) is not function:
            help_text = "choose another name, or pass override=True"
            raise UsageError(f"workload {name!r} is already registered", help=help_text)
        self._functions[name] = function
        return function

    def register_workload_tensors(self, key: str, tensors: Sequence[Tensor], override: bool = False) -> str:
        """Register tensors under a key, such as that of a DAG; return the key.

        Raises:
            UsageError: The key is taken by other tensors.
        """
        if not override and self._tensors.get(key, tuple(tensors)) != tuple(tensors):
            help_text = "a key stands for one computation; pass override=True to replace it"
            raise UsageError(f"workload {key!r:.80} is already registered", help=help_text)
        self._tensors[key] = tuple(tensors)
        return key

    def make_workload_key(self, workload: str | Callable[..., Tensors], args: Sequence[Argument] = ()) -> str:
        """Return the workload key, the JSON text `[name, argument ...]`.

        Args:
            workload: Name of a workload, or a registered function.
            args: Arguments of the function.

        Raises:
            UsageError: The workload is not registered, or an argument cannot be written as JSON.
        """
        return json.dumps([self._name_of(workload), *map(_plain, args)])

    def workload_key_to_tensors(self, key: str) -> Tensors:
        """Return the tensors of a key: those registered under it, or the result of the function it names.

        Raises:
            UsageError: The key is not a list that begins with a name, or its workload is not registered.
        """
        if key in self._tensors:
            return self._tensors[key]
        try:
            name, *args = json.loads(key)
        except (ValueError, TypeError):
            raise UsageError(f"{key!r:.80} is not a workload key; expected [name, argument ...]") from None
        if not isinstance(name, str):
            raise UsageError(f"workload key {key!r:.80} begins with {name!r:.40}; expected a name")
        return tuple(self._function(name)(*map(_argument, args)))

    def _name_of(self, workload: str | Callable[..., Tensors]) -> str:
        if isinstance(workload, str):
            self._function(workload)
            return workload
        names = [name for name, function in self._functions.items() if function is workload]
        if not names:
            name = getattr(workload, "__name__", repr(workload))
            raise UsageError(f"function {name} is not registered", help="decorate it with @register_workload")
        return names[0]

    def _function(self, name: str) -> Callable[..., Tensors]:
        if name not in self._functions:
            known = ", ".join(sorted(self._functions)) or "none"
            raise UsageError(f"workload {name!r:.80} is not registered", help=f"known: {known}")
        return self._functions[name]


WORKLOADS: Final = WorkloadRegistry()
"""The workloads of this process."""
register_workload = WORKLOADS.register_workload
register_workload_tensors = WORKLOADS.register_workload_tensors
make_workload_key = WORKLOADS.make_workload_key
workload_key_to_tensors = WORKLOADS.workload_key_to_tensors


def _plain(value: object) -> object:
    match value:
        case Tensor():
            return [TENSOR, list(value.shape), value.dtype.value]
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_plain(item) for item in cast("Sequence[object]", value)]
        case _:
            expected = "expected numbers, texts, tensors, and lists of them"
            raise UsageError(f"a workload cannot have the argument {value!r:.60}; {expected}")


def _argument(value: Any) -> Any:
    """Return an argument as functions get it: a tuple for a list, a placeholder for a tensor."""
    match value:
        case [str(mark), list(shape), str(dtype)] if mark == TENSOR:
            return placeholder(shape, DType(dtype), name="placeholder")
        case list():
            return tuple(map(_argument, value))
        case _:
            return value
