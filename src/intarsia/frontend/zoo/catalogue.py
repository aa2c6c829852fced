"""All models of the zoo, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.frontend.zoo import (
    bert,
    convnext_tiny,
    dcgan,
    efficientnet_b0,
    gpt2,
    light,
    lstm,
    mnist,
    mobilenet_v2,
    nasnet_a,
    resnext50,
    unet,
    vit_base,
)
from intarsia.frontend.zoo.zoo_model import ZooModel
from intarsia.support.errors import UsageError
from intarsia.support.registry import Registry

if TYPE_CHECKING:
    from onnx import ModelProto

_FILES = (
    bert,
    convnext_tiny,
    dcgan,
    efficientnet_b0,
    gpt2,
    light,
    lstm,
    mnist,
    mobilenet_v2,
    nasnet_a,
    resnext50,
    unet,
    vit_base,
)
_MODELS: Registry[ZooModel] = Registry("zoo model")
for _model in (m for file in _FILES for m in file.MODELS):
    _MODELS.register(_model.name, _model)


def zoo() -> tuple[ZooModel, ...]:
    """All models, sorted by name."""
    return tuple(_MODELS[name] for name in _MODELS)


def zoo_model(name: str) -> ZooModel:
    """The model of that name.

    Raises:
        UsageError: There is none; the help names the nearest.
    """
    return _MODELS[name]


def build_model(name: str, seed: int = 0) -> ModelProto:
    """A model of the zoo, its weights drawn from `seed`.

    Raises:
        UsageError: There is no such model, or the seed is negative.
    """
    if seed < 0:
        raise UsageError(f"the seed of a zoo model is {seed}, expected 0 or more")
    return zoo_model(name).build(seed)
