from __future__ import annotations

import numpy as np
from corpus.draw import Draw


def test_without_a_seed_every_choice_is_the_default() -> None:
    draw = Draw("resnet")
    assert [draw.choose("width", 16, 8, 24), draw.choose("depth", 2, 3)] == [16, 2]
    assert draw.drawn == {"width": 16, "depth": 2}


def test_seeds_give_several_configurations_and_each_one_again() -> None:
    def widths(seed: int) -> list[int]:
        draw = Draw("resnet", seed)
        return [draw.choose("width", *range(100)) for _ in range(3)]

    assert widths(1) == widths(1)
    assert len({tuple(widths(seed)) for seed in range(4)}) == 4


def test_recipes_draw_independently() -> None:
    assert not np.array_equal(Draw("resnet").normal(4), Draw("vit").normal(4))
    assert np.array_equal(Draw("resnet").normal(4), Draw("resnet").normal(4))
