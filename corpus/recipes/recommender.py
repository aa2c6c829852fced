"""Recommenders and networks for tables."""

from __future__ import annotations

import numpy as np

from corpus.draw import Draw
from corpus.inputs import prefix_mask, table, tokens
from corpus.recipe import BuiltModel, recipe

RECOMMENDER, TABULAR = "recommender", "tabular"


@recipe(RECOMMENDER, "torch dynamo", "embeddings", "products of pairs")
def dlrm(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.sequences import Dlrm

    tables = draw.choose("tables", 6, 3)
    inputs = {"dense": table(draw, 5, 13) / 100, "categories": draw.values.integers(0, 50, (tables, 5))}
    return export(draw, Dlrm(draw.choose("width", 16, 8), tables, bags=False), inputs, ["click"], opset=18)


@recipe(RECOMMENDER, "torch script", "bags of embeddings")
def dlrm_bags(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.sequences import Dlrm

    tables = draw.choose("tables", 4, 3)
    inputs = {"dense": table(draw, 5, 13) / 100, "categories": draw.values.integers(0, 50, (tables, 5, 3))}
    return export(
        draw, Dlrm(draw.choose("width", 16, 8), tables, bags=True), inputs, ["click"], opset=16, script=True
    )


@recipe(RECOMMENDER, "torch script", "embeddings", "dynamic batch")
def ncf(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.sequences import Ncf

    inputs = {"user": draw.values.integers(0, 200, 7), "item": draw.values.integers(0, 300, 7)}
    axes = {name: {0: "batch"} for name in inputs}
    return export(
        draw, Ncf(draw.choose("width", 16, 24)), inputs, ["score"], opset=13, script=True, dynamic=axes
    )


@recipe(RECOMMENDER, "torch dynamo", "embeddings", "top k")
def two_tower(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.sequences import TwoTower

    inputs = {
        "history": tokens(draw, 3, 10, 400),
        "mask": prefix_mask(draw, 3, 10),
        "candidates": np.arange(0, 400, 4),
    }
    return export(
        draw,
        TwoTower(draw.choose("width", 32, 16), draw.choose("best", 5, 10)),
        inputs,
        ["scores", "items"],
        opset=18,
    )


@recipe(TABULAR, "torch dynamo", "perceptron")
def table_mlp(draw: Draw) -> BuiltModel:
    import torch

    from corpus.exporting import export

    width = draw.choose("width", 64, 33)
    activation = draw.choose("activation", torch.nn.Mish, torch.nn.Softplus, torch.nn.ELU, torch.nn.Hardswish)
    model = torch.nn.Sequential(
        torch.nn.BatchNorm1d(20),
        torch.nn.Linear(20, width),
        activation(),
        torch.nn.Linear(width, width),
        activation(),
        torch.nn.Linear(width, 3),
        torch.nn.Softmax(-1),
    )
    return export(draw, model, {"rows": table(draw, 9, 20) / 50}, ["classes"], opset=20)


@recipe(TABULAR, "torch script", "attention", "embeddings")
def tab_transformer(draw: Draw) -> BuiltModel:
    from corpus.exporting import export
    from corpus.networks.sequences import TabTransformer

    categories = draw.choose("categories", 6, 4)
    model = TabTransformer(categories, 5, draw.choose("width", 32, 16), draw.choose("layers", 2, 1))
    inputs = {"categories": draw.values.integers(0, 20, (4, categories)), "numbers": table(draw, 4, 5)}
    return export(draw, model, inputs, ["logits"], opset=17, script=True)
