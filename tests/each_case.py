"""Many small cases as one test, which names each case that fails."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any


def each_case(
    names: str | Sequence[str], cases: Collection[Any]
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Return a decorator that makes one test of a check and its cases, like `parametrize` makes many.

    A test costs pytest and pytest-xdist 4 ms, where most of these checks take microseconds.

    Args:
        names: The check's parameters.
        cases: Their values: a tuple each, or a value each if `names` is a string.
    """
    keywords = (names,) if isinstance(names, str) else tuple(names)

    def decorate(check: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            assert cases
            failures = [
                failure
                for case in cases
                if (failure := _failure(check, keywords, (case,) if isinstance(names, str) else case))
            ]
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(cases)} cases", failures)

        test.__name__, test.__qualname__, test.__doc__ = check.__name__, check.__qualname__, check.__doc__
        return test

    return decorate


def _failure(check: Callable[..., None], names: Sequence[str], values: Sequence[Any]) -> Exception | None:
    arguments = dict(zip(names, values, strict=True))
    try:
        check(**arguments)
    except Exception as error:  # every case is tried
        error.add_note(f"case: {arguments!r}")
        return error
    return None
