"""Objects that are options of passes, as plain data."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform import ModulePass, PassContext
from intarsia.transform.option_type import OPTION_TYPES, is_option, made_option, option_type
from intarsia.transform.pass_registry import holding_pass
from intarsia.transform.pass_trace import plain_options
from intarsia.transform.replay import made_pass


@dataclass(frozen=True)
class Recipe:
    """An option."""

    sizes: tuple[int, ...] = (1, 2)
    rate: float = float("inf")
    inner: Recipe | None = None
    on_end: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)


@dataclass(frozen=True)
class Cooking(ModulePass, opt_level=0):
    """A pass with such an option, and a function that is called back."""

    recipe: Recipe = field(default_factory=Recipe)
    watch: Callable[[str], object] = field(default=print, repr=False)

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return mod


@pytest.mark.parametrize(
    ("recipe", "values"),
    [
        (Recipe(), {}),
        (Recipe(sizes=(3,), rate=0.5), {"sizes": [3], "rate": 0.5}),
        (
            Recipe(inner=Recipe(sizes=())),
            {"inner": {"option": "Recipe", "values": {"sizes": []}}},
        ),
    ],
    ids=["default", "values", "nested"],
)
def test_an_option_is_its_changed_fields(recipe: Recipe, values: dict[str, Any]) -> None:
    with OPTION_TYPES.holding("Recipe", Recipe), holding_pass("Cooking", Cooking):
        options = plain_options(Cooking(recipe))
        assert options == {"recipe": {"option": "Recipe", "values": values}}
        again = made_pass("Cooking", json.loads(json.dumps(options, allow_nan=False)))
    assert again == Cooking(recipe)


def test_what_is_not_registered_is_no_option() -> None:
    assert not is_option(Recipe())
    assert not is_option("Recipe")
    assert plain_options(Cooking()) == {"recipe": {"not plain": f"Recipe {Recipe()}"}}


def test_another_class_of_the_same_name_is_no_option() -> None:
    other = type("Recipe", (), {})
    with OPTION_TYPES.holding("Recipe", Recipe):
        assert not is_option(other())


def test_mistakes_are_refused() -> None:
    class Bare:
        pass

    with pytest.raises(UsageError, match="Bare is no dataclass"):
        option_type(Bare)
    with pytest.raises(UsageError, match="unknown option type 'Menu'"):
        made_option("Menu", {})
    with (
        OPTION_TYPES.holding("Recipe", Recipe),
        pytest.raises(UsageError, match=r"Recipe cannot be made with \{'colour': 1\}"),
    ):
        made_option("Recipe", {"colour": 1})
