"""Passes made of plain functions and classes (seed pass_infra, Python front end)."""

from __future__ import annotations

from collections.abc import Callable
from types import new_class
from typing import Any, Generic, TypedDict, TypeVar, Unpack, overload

from intarsia.ir import Function, IRModule, PrimFunc
from intarsia.support.errors import UsageError
from intarsia.transform.compiler_pass import Pass
from intarsia.transform.function_pass import FunctionPass
from intarsia.transform.module_pass import ModulePass
from intarsia.transform.pass_context import PassContext
from intarsia.transform.prim_func_pass import PrimFuncPass
from intarsia.transform.program_feature import ProgramFeature

B = TypeVar("B", bound=Pass)
F = TypeVar("F", bound=Callable[..., object])


class Constraints(TypedDict, total=False):
    """The facts of `PassInfo` that a decorator may give."""

    name: str
    required: tuple[str, ...] | list[str]
    after: tuple[str, ...] | list[str]
    directly_after: str
    directly_before: str
    conflicts: tuple[str, ...] | list[str]
    handles: tuple[ProgramFeature, ...] | frozenset[ProgramFeature]
    places_devices: bool


class PassDecorator(Generic[B, F]):
    """Turns a function into a pass, or a class with the method into a class of passes.

    Args:
        base: ModulePass, FunctionPass or PrimFuncPass.
        method: Name of the method that a class must have.
        opt_level: Level of the pass.
        constraints: Further facts for `PassInfo`.

    Raises:
        UsageError: The level is missing, also because the decorator stands without parentheses.
    """

    def __init__(self, base: type[Any], method: str, opt_level: int | None, constraints: Constraints) -> None:
        if callable(opt_level) or opt_level is None:
            raise UsageError(
                "a pass needs an opt_level: the lowest level of a PassContext at which sequences run it",
                help=f"write for example @{method.removeprefix('transform_')}_pass(opt_level=2)",
            )
        self._base = base
        self._method = method
        self._facts: dict[str, Any] = {"opt_level": opt_level, **constraints}

    @overload
    def __call__(self, target: type[Any]) -> Any: ...
    @overload
    def __call__(self, target: F) -> B: ...
    def __call__(self, target: Any) -> Any:
        """A pass for a function, a class of passes for a class.

        Raises:
            UsageError: The class lacks the method.
        """
        if isinstance(target, type):
            if not callable(getattr(target, self._method, None)):
                raise UsageError(f"class {target.__name__} needs a method {self._method!r} to be a pass")
            return self._made(target, (target, self._base), {})
        return self._made(target, (self._base,), {self._method: lambda _, *arguments: target(*arguments)})()

    def _made(self, target: Any, bases: tuple[type[Any], ...], body: dict[str, object]) -> Any:
        texts = {key: getattr(target, key) for key in ("__doc__", "__module__", "__qualname__")}
        facts = {"name": target.__name__, **self._facts}
        return new_class(target.__name__, bases, facts, lambda names: names.update({**texts, **body}))


def module_pass(
    opt_level: int | None = None, **constraints: Unpack[Constraints]
) -> PassDecorator[ModulePass, Callable[[IRModule, PassContext], IRModule]]:
    """Decorator for `(mod, ctx) -> IRModule`, or for a class with `transform_module(self, mod, ctx)`.

    >>> @module_pass(opt_level=1)
    ... def unchanged(mod, ctx):
    ...     return mod

    Raises:
        UsageError: `opt_level` is missing, or the class lacks the method.
    """
    return PassDecorator(ModulePass, "transform_module", opt_level, constraints)


def function_pass(
    opt_level: int | None = None, **constraints: Unpack[Constraints]
) -> PassDecorator[FunctionPass, Callable[[Function, IRModule, PassContext], Function]]:
    """Decorator for `(function, mod, ctx) -> Function`, or for a class with `transform_function`.

    Raises:
        UsageError: `opt_level` is missing, or the class lacks the method.
    """
    return PassDecorator(FunctionPass, "transform_function", opt_level, constraints)


def prim_func_pass(
    opt_level: int | None = None, **constraints: Unpack[Constraints]
) -> PassDecorator[PrimFuncPass, Callable[[PrimFunc, IRModule, PassContext], PrimFunc]]:
    """Decorator for `(prim_func, mod, ctx) -> PrimFunc`, or for a class with `transform_prim_func`.

    Raises:
        UsageError: `opt_level` is missing, or the class lacks the method.
    """
    return PassDecorator(PrimFuncPass, "transform_prim_func", opt_level, constraints)
