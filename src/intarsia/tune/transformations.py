"""Transformations and constraints by name, so that a trace is data and any process can replay it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from difflib import get_close_matches
from typing import Final, TypeAlias, TypeVar

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.support.registry import Registry
from intarsia.transform import Pass, PassContext, get_pass, pass_names
from intarsia.transform.pass_packages import load_pass_packages
from intarsia.transform.replay import made_pass

Transformation: TypeAlias = Callable[..., IRModule]
"""Function from a module and plain keyword arguments to a module."""

Constraint: TypeAlias = Callable[..., bool]
"""Predicate of a module and plain keyword arguments: whether a choice is open."""

T = TypeVar("T", bound=Callable[..., object])

TRANSFORMATIONS: Final[Registry[Transformation]] = Registry("transformation", "intarsia.transformations")
"""Registered transformations, and those of installed packages; every pass is one too, under its own name."""

CONSTRAINTS: Final[Registry[Constraint]] = Registry("constraint", "intarsia.constraints")
"""Registered constraints, and those of installed packages."""

IDENTITY: Final = "identity"
ALWAYS: Final = "always"


def transformation(function: T) -> T:
    """Register a function `(mod, **args) -> IRModule` as a transformation, under its own name.

    Raises:
        UsageError: The name is taken by another transformation.
    """
    TRANSFORMATIONS.register(_name(function), function)  # type: ignore[arg-type]  # the caller's promise
    return function


def constraint(function: T) -> T:
    """Register a function `(mod, **args) -> bool` as a constraint, under its own name.

    Raises:
        UsageError: The name is taken by another constraint.
    """
    CONSTRAINTS.register(_name(function), function)  # type: ignore[arg-type]  # the caller's promise
    return function


def holding_transformation(name: str, function: Transformation) -> AbstractContextManager[Transformation]:
    """Register a transformation for the duration of a `with` block (for tests and experiments)."""
    return TRANSFORMATIONS.holding(name, function)


def registered_name(named: str | Callable[..., object], registry: Registry[T]) -> str:
    """Return the name of a registered function; a name as it is.

    Raises:
        UsageError: It is a function that is not registered.
    """
    if isinstance(named, str):
        return named
    name = _name(named)
    if name in registry and registry[name] is named:
        return name
    raise UsageError(
        f"{name} is not registered as a {registry.kind}, and a trace names what it consists of",
        help=f"write @{registry.kind} above its definition, in a module that other processes can import",
    )


def apply_transformation(name: str, args: Mapping[str, object], mod: IRModule, ctx: PassContext) -> IRModule:
    """Apply a transformation: a registered one, or else the pass of that name.

    Args:
        name: Name of the transformation or pass.
        args: Arguments of the transformation, or options of the pass.
        mod: The module.
        ctx: Context of a pass.

    Raises:
        UsageError: There is neither, it does not take these arguments, or it returned no module.
    """
    named_pass = check_transformation(name, args)
    if named_pass is None:
        after = _call_with_note(TRANSFORMATIONS[name], name, mod, args)
    else:
        after = _run_with_required(named_pass, mod, ctx)
    if not isinstance(after, IRModule):
        raise UsageError(f"transformation {name} returned {type(after).__name__}, expected an IRModule")
    return after


def check_transformation(name: str, args: Mapping[str, object]) -> Pass | None:
    """Return the pass that a choice names; None for a registered transformation.

    Args:
        name: Name of the transformation or pass.
        args: Options of the pass.

    Raises:
        UsageError: There is neither, or the pass cannot be made with these options.
    """
    if name not in TRANSFORMATIONS:
        load_pass_packages()  # packages of tuning passes register the transformations of their choices
    if name in TRANSFORMATIONS:
        return None
    if name in pass_names() or "{" in name:  # the text of a pass with its options
        return made_pass(name, args)
    close = get_close_matches(name, [*TRANSFORMATIONS, *pass_names()], n=3)
    hint = "@transformation registers one; the name of a pass is one too (intarsia passes lists them)"
    raise UsageError(
        f"unknown transformation {name!r}", help=f"did you mean {' or '.join(close)}?" if close else hint
    )


def _run_with_required(item: Pass, mod: IRModule, ctx: PassContext) -> IRModule:
    """Run a pass after its required passes, also if the context disables these: a trace must replay alike."""
    for name in item.info.required:
        mod = _run_with_required(get_pass(name), mod, ctx)
    return item(mod, ctx)


def holds(name: str, args: Mapping[str, object], mod: IRModule) -> bool:
    """Whether a constraint holds of a module.

    Raises:
        UsageError: There is none of that name, or it does not take these arguments.
    """
    return bool(_call_with_note(CONSTRAINTS[name], name, mod, args))


def _call_with_note(
    function: Callable[..., object], name: str, mod: IRModule, args: Mapping[str, object]
) -> object:
    try:
        return function(mod, **args)
    except TypeError as error:
        error.add_note(f"in {name} with the arguments {dict(args)}")
        raise


def _name(function: Callable[..., object]) -> str:
    name = getattr(function, "__name__", "<lambda>")
    if name == "<lambda>":
        raise UsageError(
            "a lambda has no name that a trace could refer to", help="write a function with a name"
        )
    return name


@transformation
def identity(mod: IRModule) -> IRModule:
    """The module as it is."""
    return mod


@constraint
def always(mod: IRModule) -> bool:  # noqa: ARG001  # constraints are given the module
    """No constraint."""
    return True
