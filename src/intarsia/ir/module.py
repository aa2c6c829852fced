"""A program: graph functions and loop functions by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import Final

from intarsia.ir.attributes import NO_ATTRS, Attrs
from intarsia.ir.expr import Call, Function, GlobalVar
from intarsia.ir.prim_func import PrimFunc
from intarsia.ir.printer import print_module
from intarsia.ir.traversal import post_order
from intarsia.support.errors import UsageError

_NAMED_FUNCTIONS: Final = 5
"""Number of functions that the short form of a module names."""
_SHOWN_LINES: Final = 200
"""Lines of a program that a notebook shows; a page of a large model would be megabytes."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class IRModule:
    """Global functions, and attributes of the whole; immutable, in order of definition.

    Attributes:
        functions: Each function, of either kind, under the GlobalVar that calls of it refer to.
        attrs: Facts on the whole program, such as the name of the model.
    """

    functions: Mapping[GlobalVar, Function | PrimFunc]
    attrs: Attrs = NO_ATTRS

    def __post_init__(self) -> None:
        """Take a private copy, and refuse what is no function, and two functions of one name."""
        if not isinstance(self.functions, Mapping):
            raise UsageError(
                f"a module takes a dict of GlobalVars and functions, got {_kind(self.functions)}",
                help="IRModule.from_expr(function) makes a module of one function",
            )
        for var, function in self.functions.items():
            if not isinstance(var, GlobalVar):
                raise UsageError(
                    f"a module has {var!r} as a name, expected a GlobalVar", help=f"write GlobalVar({var!r})"
                )
            _check_function(f"@{var.name}", function)
        names = [var.name for var in self.functions]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise UsageError(f"the module defines @{twice} twice")
        object.__setattr__(self, "functions", MappingProxyType(dict(self.functions)))

    @classmethod
    def from_expr(cls, main: Function) -> IRModule:
        """A module with @main as its only function.

        Raises:
            UsageError: It is no function.
        """
        _check_function("@main", main)
        return cls({GlobalVar("main", checked_type=main.checked_type): main})

    def global_var(self, name: str) -> GlobalVar:
        """The GlobalVar that a function is defined under.

        Raises:
            UsageError: There is no such function.
        """
        for var in self.functions:
            if var.name == name:
                return var
        known = ", ".join(f"@{var.name}" for var in self.functions) or "none"
        raise UsageError(f"the module has no function @{name}", help=f"it has: {known}")

    @property
    def graph_functions(self) -> Mapping[GlobalVar, Function]:
        """The graph functions, in order of definition."""
        return {var: one for var, one in self.functions.items() if isinstance(one, Function)}

    @property
    def prim_funcs(self) -> Mapping[GlobalVar, PrimFunc]:
        """The loop functions, in order of definition."""
        return {var: one for var, one in self.functions.items() if isinstance(one, PrimFunc)}

    def __getitem__(self, name: str | GlobalVar) -> Function:
        """The graph function of that name.

        Raises:
            UsageError: There is none, or it is a loop function.
        """
        var = self.global_var(_plain(name))
        function = self.functions[var]
        if isinstance(function, PrimFunc):
            raise UsageError(f"@{var.name} is a loop function", help=f'use .prim_func("{var.name}")')
        return function

    def prim_func(self, name: str | GlobalVar) -> PrimFunc:
        """The loop function of that name.

        Raises:
            UsageError: There is none, or it is a graph function.
        """
        var = self.global_var(_plain(name))
        function = self.functions[var]
        if isinstance(function, Function):
            raise UsageError(f"@{var.name} is a graph function", help=f'use module["{var.name}"]')
        return function

    def __contains__(self, name: object) -> bool:
        wanted = name.name if isinstance(name, GlobalVar) else name
        return any(var.name == wanted for var in self.functions)

    def __iter__(self) -> Iterator[GlobalVar]:
        return iter(self.functions)

    def with_function(self, name: str | GlobalVar, function: Function | PrimFunc) -> IRModule:
        """A module with one function added or replaced; the same object if it is that function already.

        Raises:
            UsageError: It is no function.
        """
        plain = _plain(name)
        _check_function(f"@{plain}", function)
        if plain in self:
            var = self.global_var(plain)
            if self.functions[var] is function:
                return self
        elif isinstance(name, GlobalVar):
            var = name
        else:
            var = GlobalVar(
                plain, checked_type=function.checked_type if isinstance(function, Function) else None
            )
        return with_module_fields(self, functions={**self.functions, var: function})

    def __str__(self) -> str:
        return print_module(self).text

    def __repr__(self) -> str:
        """The names of the functions, the type of @main and the number of calls; `str` is the program."""
        shown = [_headline(var, function) for var, function in self.functions.items()]
        rest = len(shown) - _NAMED_FUNCTIONS
        names = [*shown[:_NAMED_FUNCTIONS], *([f"{rest} more"] if rest > 0 else [])]
        calls = sum(isinstance(expr, Call) for expr in post_order(*self.graph_functions.values()))
        return f"IRModule({', '.join(names) or 'no functions'}; {calls} call{'' if calls == 1 else 's'})"

    def _repr_html_(self) -> str:
        """The program's first lines, for notebooks."""
        lines = str(self).splitlines()
        rest = len(lines) - _SHOWN_LINES
        shown = [*lines[:_SHOWN_LINES], *([f"... {rest} more lines: print(module)"] if rest > 0 else [])]
        return f"<pre>{escape(chr(10).join(shown), quote=False)}</pre>"


def _headline(var: GlobalVar, function: Function | PrimFunc) -> str:
    """Return the name of a function; of @main with its type."""
    type_ = function.checked_type if var.name == "main" and isinstance(function, Function) else None
    return f"@{var.name}" if type_ is None else f"@{var.name}: {type_}"


def _plain(name: str | GlobalVar) -> str:
    if isinstance(name, str):
        return name
    if not isinstance(name, GlobalVar):
        raise UsageError(f"functions of a module have names, got {name!r}")
    return name.name


def _check_function(name: str, function: object) -> None:
    """Check that a module can define a value under a name.

    Raises:
        UsageError: It is no function.
    """
    if not isinstance(function, (Function, PrimFunc)):
        raise UsageError(
            f"the module defines {name} as {_kind(function)}, expected a function",
            help="Function(params, body) makes a function of an expression",
        )


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"


def with_module_fields(
    module: IRModule,
    functions: Mapping[GlobalVar, Function | PrimFunc] | None = None,
    attrs: Attrs | None = None,
) -> IRModule:
    """Copy-on-write for modules: the same object when every function and attribute is what it was."""
    functions = module.functions if functions is None else functions
    attrs = module.attrs if attrs is None else attrs
    same_functions = list(functions) == list(module.functions) and all(
        functions[var] is module.functions[var] for var in functions
    )
    return module if same_functions and attrs == module.attrs else IRModule(functions, attrs)
