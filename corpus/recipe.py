"""What a recipe is, and the registry of all."""

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
    "torch dynamo", "torch script", "skl2onnx", "onnxruntime", "onnx.helper", "onnxscript", "onnxconverter"
]

Storage = Literal["inline", "external", "from external"]

_RECIPES: Final[dict[str, Recipe]] = {}


@dataclass(frozen=True, slots=True, eq=False)
class BuiltModel:
    """A model with inputs for it.

    Attributes:
        proto: The model.
        inputs: Arrays by input name; texts are arrays of dtype object.
        storage: Where weights are stored: inside the file, in a file beside it, or in a file that was loaded
            from such a pair and saved as one.
    """

    proto: ModelProto
    inputs: Mapping[str, npt.NDArray[Any]]
    storage: Storage = "inline"


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """Builds one model of the corpus.

    Attributes:
        name: The name of the model.
        family: What such models are for, a heading of the table.
        exporter: The program that writes the ONNX file.
        features: What is special about the file, in a few words each.
        build: The function that builds it.
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
        family: What such models are for.
        exporter: The program that writes the file.
        features: What is special about the file.

    Raises:
        ValueError: There is a recipe of that name.
    """

    def register(build: Callable[[Draw], BuiltModel]) -> Callable[[Draw], BuiltModel]:
        name = build.__name__
        if name in _RECIPES:
            raise ValueError(f"there are two recipes {name}")
        _RECIPES[name] = Recipe(name, family, exporter, features, build)
        return build

    return register


def recipes() -> Mapping[str, Recipe]:
    """Return all recipes by name, those of a file together and the files by name."""
    import corpus.recipes

    for module in sorted(iter_modules(corpus.recipes.__path__), key=lambda module: module.name):
        import_module(f"corpus.recipes.{module.name}")
    return _RECIPES
