"""Recipes of models, and the registry of all recipes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy.typing as npt

from corpus.draw import Draw

if TYPE_CHECKING:
    from onnx import ModelProto

Exporter = Literal[
    "torch dynamo",
    "torch script",
    "skl2onnx",
    "onnxruntime",
    "onnxruntime-genai",
    "onnx.helper",
    "onnxscript",
    "onnxconverter",
]

Storage = Literal["inline", "external", "from external"]

_RECIPES: Final[dict[str, Recipe]] = {}


@dataclass(frozen=True, slots=True, eq=False)
class BuiltModel:
    """A model with inputs for it.

    Attributes:
        proto: ONNX model.
        inputs: Arrays by input name; texts are arrays of dtype object.
        storage: Storage of the weights: inside the file, in a second file, or inside a file that was
        converted
            from such a pair.
    """

    proto: ModelProto
    inputs: Mapping[str, npt.NDArray[Any]]
    storage: Storage = "inline"


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """Recipe of one model of the corpus.

    Attributes:
        name: Name of the model.
        family: Purpose of such models; a heading of the page.
        exporter: Program that writes the ONNX file.
        features: Special features of the file, a few words each.
        build: Function that builds the model.
    """

    name: str
    family: str
    exporter: Exporter
    features: tuple[str, ...]
    build: Callable[[Draw], BuiltModel]


def recipe(
    family: str, exporter: Exporter, *features: str
) -> Callable[[Callable[[Draw], BuiltModel]], Callable[[Draw], BuiltModel]]:
    """Register a function as the recipe of a model with the function's name.

    Args:
        family: Purpose of such models.
        exporter: Program that writes the file.
        features: Special features of the file.

    Raises:
        ValueError: There is another recipe of that name.
    """

    def register(build: Callable[[Draw], BuiltModel]) -> Callable[[Draw], BuiltModel]:
        name = build.__name__
        if name in _RECIPES:
            raise ValueError(f"there are two recipes {name}")
        _RECIPES[name] = Recipe(name, family, exporter, features, build)
        return build

    return register


def recipes() -> Mapping[str, Recipe]:
    """Import all recipes, and return them by name, in the order of their files."""
    import corpus.recipes

    for module in sorted(iter_modules(corpus.recipes.__path__), key=lambda module: module.name):
        import_module(f"corpus.recipes.{module.name}")
    return _RECIPES
