"""The opset that the language's operators are pinned to, and their schemas.

The evidence for the number is in docs/decisions/0002: it is the newest that the toolchains accept.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from intarsia.support.errors import InvalidModelError, UnsupportedModelError

if TYPE_CHECKING:
    from onnx.defs import OpSchema

PINNED_OPSET = 26
INTARSIA_DOMAIN = "intarsia"
OPSETS = MappingProxyType(
    {
        "": PINNED_OPSET,
        "ai.onnx.ml": 5,
        "ai.onnx.preview": 1,
        "ai.onnx.preview.training": 1,
        INTARSIA_DOMAIN: 1,
    }
)
"""Version of each operator domain that the language speaks; "" is ONNX's default domain."""


@cache
def schema_of(name: str, domain: str = "") -> OpSchema:
    """ONNX's schema of an operator at the pinned opset.

    Raises:
        UnsupportedModelError: The domain is none of ONNX's.
        InvalidModelError: The domain has no such operator at the pinned opset.
    """
    if domain not in OPSETS:
        raise UnsupportedModelError(
            f"operator {name!r} belongs to the domain {domain!r}, which is not one of ONNX's",
            help=f"supported domains: {', '.join(repr(known) for known in OPSETS)}",
        )
    schema = schema_at(name, OPSETS[domain], domain)
    if schema is None:
        raise unknown_operator(name, domain)
    return schema


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


def unknown_operator(name: str, domain: str, version: int | None = None) -> InvalidModelError:
    """The error for an operator that a known domain lacks, with the nearest names.

    Args:
        name: The operator.
        domain: One of the keys of `OPSETS`.
        version: Version of the domain where it was looked for; None for the one in `OPSETS`.
    """
    version = OPSETS[domain] if version is None else version
    shown = f"version {version} of the domain {domain!r}" if domain else f"ONNX opset {version}"
    return InvalidModelError(
        f"unknown operator {name!r}: {shown} has no such operator", help=_nearest(name, domain)
    )


def _nearest(name: str, domain: str) -> str:
    from difflib import get_close_matches

    from onnx import defs

    schemas = [item for item in defs.get_all_schemas_with_history() if item.domain == domain]
    versions = sorted({item.since_version for item in schemas if item.name == name})
    if versions:
        ended = any(item.deprecated for item in schemas if item.name == name)
        shown = (
            f"versions {versions[0]} to {versions[-1] - 1}" if ended else f"version {versions[0]} and newer"
        )
        return f"{name} belongs to {shown} of the opset"
    close = get_close_matches(name, sorted({item.name for item in schemas}), n=3)
    return f"did you mean {' or '.join(close)}?" if close else "check the exporter that wrote the model"


@cache
def has_variadic_output(name: str, domain: str) -> bool:
    """Whether an operator returns a list of values, so that its calls always return a tuple."""
    if domain == INTARSIA_DOMAIN:
        return False
    outputs = schema_of(name, domain).outputs
    return bool(outputs) and outputs[-1].option.name == "Variadic"
