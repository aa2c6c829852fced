"""A program: global functions by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from intarsia.ir.attributes import NO_ATTRS, Attrs
from intarsia.ir.expr import Function, GlobalVar
from intarsia.support.errors import UsageError


@dataclass(frozen=True, slots=True, eq=False)
class IRModule:
    """Global functions, and attributes of the whole; immutable, in order of definition.

    Attributes:
        functions: Each function under the GlobalVar that calls of it refer to.
        attrs: Facts on the whole program, such as the name of the model.
    """

    functions: Mapping[GlobalVar, Function]
    attrs: Attrs = NO_ATTRS

    def __post_init__(self) -> None:
        """Take a private copy, and refuse two functions of one name."""
        names = [var.name for var in self.functions]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise UsageError(f"the module defines @{twice} twice")
        object.__setattr__(self, "functions", MappingProxyType(dict(self.functions)))

    @classmethod
    def from_expr(cls, main: Function) -> IRModule:
        """A module whose only function is @main."""
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

    def __getitem__(self, name: str | GlobalVar) -> Function:
        return self.functions[self.global_var(name if isinstance(name, str) else name.name)]

    def __contains__(self, name: object) -> bool:
        wanted = name.name if isinstance(name, GlobalVar) else name
        return any(var.name == wanted for var in self.functions)

    def __iter__(self) -> Iterator[GlobalVar]:
        return iter(self.functions)

    def with_function(self, name: str | GlobalVar, function: Function) -> IRModule:
        """A module with one function added or replaced; the same object if it is that function already."""
        plain = name if isinstance(name, str) else name.name
        var = self.global_var(plain) if plain in self else None
        if var is None:
            var = (
                name if isinstance(name, GlobalVar) else GlobalVar(plain, checked_type=function.checked_type)
            )
        elif self.functions[var] is function:
            return self
        return with_module_fields(self, functions={**self.functions, var: function})

    def __str__(self) -> str:
        from intarsia.ir.printer import print_module

        return print_module(self).text


def with_module_fields(
    module: IRModule, functions: Mapping[GlobalVar, Function] | None = None, attrs: Attrs | None = None
) -> IRModule:
    """Copy-on-write for modules: the same object when every function and attribute is what it was."""
    functions = module.functions if functions is None else functions
    attrs = module.attrs if attrs is None else attrs
    same_functions = list(functions) == list(module.functions) and all(
        functions[var] is module.functions[var] for var in functions
    )
    return module if same_functions and attrs == module.attrs else IRModule(functions, attrs)
