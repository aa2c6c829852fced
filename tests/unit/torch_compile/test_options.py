"""Options and modes of the backend."""

from __future__ import annotations

from typing import Any

import pytest

from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.torch_compile.options import DEFAULT_TOOLCHAINS, CompileOptions


def test_defaults_build_without_measuring() -> None:
    options = CompileOptions.parse(None)
    assert options.budget is None
    assert [target.toolchain for target in options.targets()] == list(DEFAULT_TOOLCHAINS)


@pytest.mark.parametrize(
    ("mode", "budget"), [("default", None), ("reduce-overhead", None), ("max-autotune", "60s")]
)
def test_modes_stand_for_budgets(mode: str, budget: str | None) -> None:
    assert CompileOptions.parse(None, mode).budget == budget


def test_toolchains_are_names_or_targets() -> None:
    options = CompileOptions.parse({"toolchains": ["native", "cpu -toolchain=openvino -threads=2"]})
    assert options.targets() == (
        Target.for_toolchain("native"),
        Target.for_toolchain("openvino", threads=2),
    )
    assert CompileOptions.parse({"toolchains": "native"}).targets() == (Target.for_toolchain("native"),)


def test_threads_are_those_of_every_target() -> None:
    targets = CompileOptions.parse({"threads": 1, "toolchains": ["native"]}).targets()
    assert targets == (Target.for_toolchain("native", threads=1),)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"bugdet": "20s"}, 'the backend "intarsia" has no option "bugdet"\nhelp: did you mean "budget"?'),
        ({"budget": "soon"}, "the budget 'soon' is not a time"),
        ({"budget": 0}, 'the budget of the backend "intarsia" is 0'),
        ({"toolchains": []}, "toolchains is [], expected a list of names"),
        ({"toolchains": 3}, "toolchains is 3, expected a list of names"),
    ],
)
def test_mistakes_are_errors(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        CompileOptions.parse(options)
    assert str(caught.value).startswith(complaint)


def test_an_unknown_mode_is_an_error() -> None:
    with pytest.raises(UsageError, match='has no mode "fastest"'):
        CompileOptions.parse(None, "fastest")
