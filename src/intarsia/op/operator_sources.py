"""Sources of registered operators: their modules for other processes, and digests for records."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any, Final

from intarsia.ir import Call, IRModule, Op, post_order
from intarsia.op.opaque import is_defined
from intarsia.op.operator_definition import OperatorDefinition, definition_of, registered_definitions
from intarsia.support.digest import digest_bytes, digest_text
from intarsia.support.errors import UsageError

MAIN: Final = "__main__"


def used_definitions(module: IRModule) -> tuple[OperatorDefinition, ...]:
    """Return the definitions of the registered operators that a program calls, sorted by name."""
    used = {}
    for expr in post_order(*module.graph_functions.values()):
        if isinstance(expr, Call) and isinstance(expr.op, Op) and is_defined(expr):
            definition = definition_of(expr.op.domain, expr.op.name)
            if definition is not None:
                used[str(definition)] = definition
    return tuple(used[name] for name in sorted(used))


def registering_modules() -> tuple[str, ...]:
    """Return the modules with functions of registered operators; importing them registers the operators.

    The main script and interactive sessions are left out: other processes do not run them.
    """
    names = {name for definition in registered_definitions() for name in map(_module, _functions(definition))}
    return tuple(sorted(names - {MAIN, ""}))


def check_workers_find(module: IRModule) -> None:
    """Check that other processes find the registered operators of a program.

    Raises:
        UsageError: One is defined in the main script or in an interactive session.
    """
    for definition in used_definitions(module):
        if MAIN in map(_module, _functions(definition)):
            raise UsageError(
                f"operator {str(definition)!r} is registered in the main script, which worker processes do "
                "not run",
                help="define its functions in a module, and import that from the script",
            )


def operator_digests(module: IRModule) -> tuple[str, ...]:
    """Return a digest for each registered operator of a program, which changes with its source.

    The source is the file that defines its functions, or their byte code where there is no file.
    """
    return tuple(
        digest_text((str(item), *(_source_digest(function) for function in _functions(item))))
        for item in used_definitions(module)
    )


def _functions(definition: OperatorDefinition) -> Iterator[Callable[..., Any]]:
    for function in (definition.infer, definition.compute, definition.reference):
        if function is not None:
            yield _unwrapped(function)


def _unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(function, partial):
        function = function.func
    unwrapped: Callable[..., Any] = inspect.unwrap(function)
    return unwrapped


def _module(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__module__", None) or "")


def _source_digest(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return repr(getattr(function, "__qualname__", type(function)))
    path = Path(code.co_filename)
    return digest_bytes(path.read_bytes()).hex() if path.is_file() else digest_text(_code_parts([code]))


def _code_parts(codes: Iterable[CodeType]) -> Iterator[str]:
    for code in codes:
        yield code.co_code.hex()
        yield repr(code.co_names)
        yield repr([item for item in code.co_consts if not isinstance(item, CodeType)])
        yield from _code_parts(item for item in code.co_consts if isinstance(item, CodeType))
