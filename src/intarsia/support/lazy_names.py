"""Names of a package that are imported when they are first used, so that the package itself loads fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: dict[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package with lazily imported names (PEP 562).

    A name whose module the wheel intarsia-runtime lacks raises an AttributeError with the remedy.

    Args:
        package: The `globals()` of the package; a name is added to them when it is first used.
        homes: The module of each name.
    """

    def get_attribute(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        try:
            home = import_module(homes[name])
        except ModuleNotFoundError as error:
            if not is_own_module(error.name):
                raise
            raise AttributeError(
                f"{package['__name__']}.{name} needs the compiler, which intarsia-runtime does not contain\n"
                f"help: pip install intarsia"
            ) from None
        value = package[name] = getattr(home, name)
        return value

    def list_names() -> list[str]:
        """List the public names, as `__all__` has them; the others are not for users."""
        public = package.get("__all__", {*homes, *package})
        return sorted({*public, *(name for name in package if is_dunder(name))})

    return get_attribute, list_names


def is_own_module(name: str | None) -> bool:
    """Whether a module is one of Intarsia's."""
    return name is not None and name.partition(".")[0] == __name__.partition(".")[0]


def is_dunder(name: str) -> bool:
    """Whether a name is one of Python's own, such as `__doc__`."""
    return name.startswith("__") and name.endswith("__")
