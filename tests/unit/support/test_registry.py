"""Registries: names, near matches, entry points."""

from __future__ import annotations

import math
from importlib.metadata import EntryPoint

import pytest

from intarsia.support.errors import UsageError
from intarsia.support.registry import Registry


def colours() -> Registry[int]:
    registry: Registry[int] = Registry("colour")
    registry.register("red", 1)
    registry.register("green", 2)
    return registry


def test_values_are_found_and_listed_by_name() -> None:
    registry = colours()
    assert registry["red"] == 1
    assert "green" in registry
    assert "blue" not in registry
    assert list(registry) == ["green", "red"]


def test_a_taken_name_is_refused_for_another_value_only() -> None:
    registry = colours()
    assert registry.register("red", 1) == 1
    with pytest.raises(UsageError, match="colour 'red' is already registered"):
        registry.register("red", 3)


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        colours()["gren"]
    assert str(caught.value) == "unknown colour 'gren'\nhelp: did you mean green?"
    with pytest.raises(UsageError) as caught:
        colours()["xyz"]
    assert str(caught.value) == "unknown colour 'xyz'\nhelp: known: green, red"


def test_holding_a_value_ends_with_the_block() -> None:
    registry = colours()
    with registry.holding("red", 7), registry.holding("blue", 8):
        assert (registry["red"], registry["blue"]) == (7, 8)
    assert registry["red"] == 1
    assert "blue" not in registry


def test_entry_points_are_loaded_when_asked_for() -> None:
    registry: Registry[type] = Registry("toolchain", group="intarsia.toolchains")
    assert {"onnxruntime", "openvino", "reference"} <= set(registry)
    assert registry["reference"].__name__ == "Reference"


def test_a_default_stands_back_behind_what_packages_announce(monkeypatch: pytest.MonkeyPatch) -> None:
    group = "intarsia.colours"
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [EntryPoint("e", "math:e", group)])
    registry: Registry[float] = Registry("number", group, {"e": "math:tau", "pi": "math:pi"})
    assert list(registry) == ["e", "pi"]
    assert (registry["e"], registry["pi"]) == (math.e, math.pi)


def test_a_name_that_packages_announce_with_different_values_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = "intarsia.colours"
    points = [
        EntryPoint("pi", "math:pi", group),
        EntryPoint("pi", "math:pi", group),
        EntryPoint("e", "math:e", group),
        EntryPoint("e", "math:tau", group),
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    registry: Registry[float] = Registry("number", group=group)
    assert list(registry) == ["e", "pi"]
    assert registry["pi"] == math.pi
    with pytest.raises(UsageError) as caught:
        registry["e"]
    assert str(caught.value) == (
        "number 'e' is announced by several packages: math:e and math:tau\n"
        "help: uninstall all of them but one"
    )
