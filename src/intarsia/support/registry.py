"""A named collection that can be extended in code and by the entry points of installed packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar

from intarsia.support.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Registry(Generic[T]):
    """Maps names to values of one kind; an entry point is loaded when its name is first looked up.

    Args:
        kind: Noun for the values in messages ("toolchain", "pass").
        group: Entry point group that contributes further values, or None.
        defaults: Values, written as in entry points, by names that no installed package announces.
    """

    def __init__(
        self, kind: str, group: str | None = None, defaults: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.kind = kind
        self._group = group
        self._defaults = defaults
        self._values: dict[str, T] = {}
        self._entry_points: dict[str, EntryPoint] | None = None
        self._contested: dict[str, tuple[str, ...]] = {}

    def register(self, name: str, value: T) -> T:
        """Add a value.

        Raises:
            UsageError: The name is taken by another value.
        """
        if self._values.get(name, value) is not value:
            raise UsageError(f"{self.kind} {name!r} is already registered")
        self._values[name] = value
        return value

    def replace(self, name: str, value: T) -> T:
        """Add a value in place of the one of that name."""
        self._values[name] = value
        return value

    @contextmanager
    def holding(self, name: str, value: T) -> Iterator[T]:
        """Register a value for the duration of a `with` block, even if the name is taken."""
        absent = object()
        before: object = self._values.get(name, absent)
        self._values[name] = value
        try:
            yield value
        finally:
            if before is absent:
                del self._values[name]
            else:
                self._values[name] = before  # type: ignore[assignment]  # it was a value of this registry

    def __getitem__(self, name: str) -> T:
        """Return the value of that name.

        Raises:
            UsageError: It is unknown (the nearest names are listed), or packages announce different values.
        """
        if name not in self._values:
            point = self._points().get(name)
            if point is None:
                raise UsageError(f"unknown {self.kind} {name!r}", help=self._candidates(name))
            if name in self._contested:
                announced = " and ".join(self._contested[name])
                raise UsageError(
                    f"{self.kind} {name!r} is announced by several packages: {announced}",
                    help="uninstall all of them but one",
                )
            self._values[name] = point.load()
        return self._values[name]

    def get(self, name: str) -> T | None:
        """Return the value of that name; None if it is unknown.

        Raises:
            UsageError: Packages announce different values.
        """
        return self[name] if name in self else None  # noqa: SIM401 - this is that method

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self._points()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._values, *self._points()}))

    def _points(self) -> dict[str, EntryPoint]:
        if self._entry_points is None:
            from importlib.metadata import EntryPoint, entry_points  # takes 50 ms: import it on first use

            points = entry_points(group=self._group) if self._group else ()
            defaults = (EntryPoint(name, value, self._group or "") for name, value in self._defaults.items())
            self._entry_points = {point.name: point for point in (*defaults, *points)}
            self._contested = _contested_names(points)
        return self._entry_points

    def _candidates(self, name: str) -> str:
        names = list(self)
        close = get_close_matches(name, names, n=3)
        return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(names) or 'none'}"


def _contested_names(points: Iterable[EntryPoint]) -> dict[str, tuple[str, ...]]:
    """Return the names that packages announce with different values, and those values."""
    values: dict[str, dict[str, None]] = {}
    for point in points:
        values.setdefault(point.name, {})[point.value] = None
    return {name: tuple(different) for name, different in values.items() if len(different) > 1}
