"""The opset that the language's operators are pinned to, and their schemas.

The evidence for the number is in docs/decisions/0002: it is the newest that the toolchains accept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from intarsia.op.opaque import declared_version, is_declared, operator_domain
from intarsia.support.errors import InvalidModelError, UnsupportedModelError

if TYPE_CHECKING:
    from onnx.defs import OpSchema

PINNED_OPSET = 26
INTARSIA_DOMAIN = "intarsia"
ML_DOMAIN = "ai.onnx.ml"
OPSETS = MappingProxyType(
    {
        "": PINNED_OPSET,
        ML_DOMAIN: 5,
        "ai.onnx.preview": 1,
        "ai.onnx.preview.training": 1,
        INTARSIA_DOMAIN: 1,
    }
)
"""Version of each operator domain that the language speaks; "" is ONNX's default domain."""

_ALIKE: Final = 0.65
"""Least likeness, as difflib measures it, of a name that an unknown one may be misspelt from."""

LAST_WITH_TREE_ENSEMBLES = 4
"""Version of ai.onnx.ml that still has TreeEnsembleClassifier and TreeEnsembleRegressor."""


def domain_version(domain: str) -> int:
    """The version of a domain that the language speaks.

    Raises:
        UnsupportedModelError: The domain is none of ONNX's, and no package declares it.
    """
    return OPSETS[domain] if domain in OPSETS else declared_version(domain)


def schema_of(name: str, domain: str = "") -> OpSchema:
    """The schema of an operator: ONNX's at the pinned opset, or what a package declares for its domain.

    Raises:
        UnsupportedModelError: The domain is none of ONNX's, and no package declares it.
        InvalidModelError: The domain has no such operator.
    """
    if domain in OPSETS:
        return _pinned_schema(name, domain)
    if not is_declared(domain):
        raise UnsupportedModelError(
            f"operator {name!r} belongs to the domain {domain!r}, which is not one of ONNX's",
            help=f"supported domains: {', '.join(repr(known) for known in OPSETS)}",
        )
    schema = operator_domain(domain).schema(name)
    if schema is None:
        raise unknown_operator(name, domain)
    return schema


@cache
def _pinned_schema(name: str, domain: str) -> OpSchema:
    schema = schema_at(name, version_of(name, domain), domain)
    if schema is None:
        raise unknown_operator(name, domain)
    return schema


def version_of(name: str, domain: str = "") -> int:
    """Version of its domain in which the language speaks an operator.

    It is the one of `OPSETS`, but for operators of ai.onnx.ml that version 5 deprecated: models of
    scikit-learn use them, so that they stay as version 4 defines them.

    Raises:
        UnsupportedModelError: The domain is none of ONNX's, and no package declares it.
    """
    return _version_of(name, domain) if domain in OPSETS else declared_version(domain)


@cache
def _version_of(name: str, domain: str) -> int:
    from onnx import defs

    version = OPSETS[domain]
    if not domain:
        return version
    try:
        is_deprecated = defs.get_schema(name, version, domain).deprecated
    except defs.SchemaError:
        return version
    return LAST_WITH_TREE_ENSEMBLES if is_deprecated else version


@cache
def schema_at(name: str, version: int, domain: str = "") -> OpSchema | None:
    """ONNX's schema of an operator at a version of its domain; None where it is not (or no longer) defined.

    The domain ai.onnx.ml keeps its deprecated operators: models of scikit-learn use them.
    """
    from onnx import defs

    try:
        schema = defs.get_schema(name, version, domain)
    except defs.SchemaError:
        return None
    return None if schema.deprecated and not domain else schema


@cache
def newest_schema(name: str, domain: str = "") -> OpSchema:
    """ONNX's newest schema of an operator that the pinned opset has."""
    from onnx import defs

    return defs.get_schema(name, domain)


def versions_of(operators: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Version of each domain for a model that holds operators, given as (domain, name).

    Raises:
        UnsupportedModelError: Two of them belong to no common version of their domain.
    """
    versions: dict[str, dict[int, str]] = {}
    for domain, name in operators:
        versions.setdefault(domain, {}).setdefault(version_of(name, domain), name)
    return {domain: _common_version(domain, by_version) for domain, by_version in versions.items()}


def _common_version(domain: str, by_version: Mapping[int, str]) -> int:
    """The oldest of the versions, where the other operators mean the same."""
    version = min(by_version)
    for newer, name in by_version.items():
        if newer == version:
            continue
        before, after = (schema_at(name, at, domain) for at in (version, newer))
        if before is None or after is None or before.since_version != after.since_version:
            raise UnsupportedModelError(
                f"operators {by_version[version]!r} and {name!r} belong to different versions of the domain "
                f"{domain!r}, {version} and {newer}, and one model has one version of it"
            )
    return version


def unknown_operator(name: str, domain: str, version: int | None = None) -> InvalidModelError:
    """The error for an operator that a known domain lacks, with the nearest names.

    Args:
        name: The operator.
        domain: One of the keys of `OPSETS`, or one that a package declares.
        version: Version of the domain where it was looked for; None for the one that the language speaks.
    """
    version = domain_version(domain) if version is None else version
    shown = f"version {version} of the domain {domain!r}" if domain else f"ONNX opset {version}"
    return InvalidModelError(
        f"unknown operator {name!r}: {shown} has no such operator", help=_nearest(name, domain)
    )


def _nearest(name: str, domain: str) -> str:
    from onnx import defs

    if domain not in OPSETS:
        close = _alike(name, operator_domain(domain).operators())
        return f"did you mean {' or '.join(close)}?" if close else "check what wrote the model"
    schemas = [item for item in defs.get_all_schemas_with_history() if item.domain == domain]
    versions = sorted({item.since_version for item in schemas if item.name == name})
    if versions:
        ended = any(item.deprecated for item in schemas if item.name == name)
        shown = (
            f"versions {versions[0]} to {versions[-1] - 1}" if ended else f"version {versions[0]} and newer"
        )
        return f"{name} belongs to {shown} of the opset"
    close = _alike(name, {item.name for item in schemas})
    return f"did you mean {' or '.join(close)}?" if close else "check the exporter that wrote the model"


def _alike(name: str, operators: Iterable[str]) -> list[str]:
    """Return up to three names that are spelt almost like one, or that it abbreviates by half at most."""
    from difflib import get_close_matches

    names = sorted(operators)
    close = get_close_matches(name, names, n=3, cutoff=_ALIKE)
    return close or [item for item in names if item.startswith(name) and len(item) <= 2 * len(name)][:3]


def has_variadic_output(name: str, domain: str) -> bool:
    """Whether an operator returns a list of values, so that its calls always return a tuple."""
    if domain == INTARSIA_DOMAIN:
        return False
    outputs = schema_of(name, domain).outputs
    return bool(outputs) and outputs[-1].option.name == "Variadic"
