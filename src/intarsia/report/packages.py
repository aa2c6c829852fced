"""Packages of the extra `report`, which only reports need."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from intarsia.support.errors import UsageError

INSTALL: Final = "pip install 'intarsia[report]'"


def report_package(name: str) -> Any:
    """Import a module of a package of the extra `report`.

    Raises:
        UsageError: It is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(
            f"a report needs the package {name.partition('.')[0].replace('_', '-')}", help=INSTALL
        ) from error


def check_report_packages() -> None:
    """Import all packages of the extra, so that a long run does not end without its report.

    Raises:
        UsageError: One is not installed.
    """
    for name in ("jinja2", "matplotlib", "fast_sugiyama"):
        report_package(name)
