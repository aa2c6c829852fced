"""The recipes can be listed where PyTorch is not, and cover what the corpus promises."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from corpus.draw import Draw
from corpus.inputs import prefix_mask, tokens
from corpus.recipe import recipe, recipes


def test_listing_recipes_needs_none_of_their_packages() -> None:
    code = (
        "import sys\nfrom corpus.recipe import recipes\nrecipes()\n"
        "print([name for name in ('torch', 'timm', 'sklearn', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_corpus_has_the_families_and_exporters_that_it_promises() -> None:
    table = recipes()
    assert len(table) >= 60
    families = {each.family for each in table.values()}
    assert families >= {
        "image classification",
        "detection",
        "segmentation",
        "video",
        "speech",
        "text encoders",
        "text decoders",
        "text to text",
        "images and texts",
        "diffusion",
        "recommender",
        "tabular",
        "tree ensembles",
        "quantised",
        "float16 and bfloat16",
        "control flow",
    }
    assert {each.exporter for each in table.values()} >= {"torch dynamo", "torch script", "skl2onnx"}


def test_a_name_is_given_once() -> None:
    with pytest.raises(ValueError, match="two recipes resnet"):
        recipe("family", "onnx.helper")(recipes()["resnet"].build)


def test_tokens_are_within_the_vocabulary_and_one_text_is_full() -> None:
    draw = Draw("bert")
    ids, mask = tokens(draw, 3, 50, 20), prefix_mask(draw, 3, 8)
    assert ids.min() >= 0
    assert ids.max() < 20
    assert mask[0].all()
    assert set(np.unique(mask)) == {0, 1}
    assert (np.diff(mask) <= 0).all()
