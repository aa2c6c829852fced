import math
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.support.errors import UsageError
from intarsia.target import (
    TARGET_OPTIONS,
    OptionValue,
    Target,
    TargetOption,
    register_option,
    toolchain_options,
)
from intarsia.target.option import OptionRegistry, option_text

FLAG = TargetOption("flag", bool, "a flag")
RATIO = TargetOption("ratio", float, "a ratio", minimum=0)
PRECISION = TargetOption("precision", str, "element type of the arithmetic", choices=("f32", "bf16"))
NAME = TargetOption("name", str, "a name")
COUNT = TargetOption("count", int, "a count", minimum=1)


def message(option: TargetOption, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        option.parse(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        (FLAG, "true", True),
        (FLAG, "false", False),
        (RATIO, "0.5", 0.5),
        (RATIO, "2", 2.0),
        (PRECISION, "bf16", "bf16"),
        (NAME, "-x=y", "-x=y"),
        (COUNT, "16", 16),
    ],
)
def test_parse(option: TargetOption, text: str, value: OptionValue) -> None:
    parsed = option.parse(text)
    assert (parsed, type(parsed)) == (value, option.type)


@pytest.mark.parametrize(
    ("option", "text", "expected"),
    [
        (FLAG, "1", "target option -flag is '1'; expected true or false\nhelp: a flag"),
        (RATIO, "nan", "target option -ratio is nan; expected a finite number, at least 0\nhelp: a ratio"),
        (RATIO, "-0.5", "target option -ratio is -0.5; expected a finite number, at least 0\nhelp: a ratio"),
        (
            PRECISION,
            "f16",
            "target option -precision is 'f16'; expected f32 or bf16\nhelp: element type of the arithmetic",
        ),
        (
            NAME,
            'a"b',
            "target option -name is 'a\"b'; expected a text without spaces and quotes\nhelp: a name",
        ),
        (
            NAME,
            "a\tb",
            "target option -name is 'a\\tb'; expected a text without spaces and quotes\nhelp: a name",
        ),
        (COUNT, "two", "target option -count is 'two'; expected a whole number, at least 1\nhelp: a count"),
        (COUNT, "0", "target option -count is 0; expected a whole number, at least 1\nhelp: a count"),
    ],
)
def test_refused_text(option: TargetOption, text: str, expected: str) -> None:
    assert message(option, text) == expected


@pytest.mark.parametrize(("option", "value"), [(COUNT, True), (COUNT, 1.0), (FLAG, 1), (NAME, 3), (NAME, "")])
def test_value_of_another_type_is_refused(option: TargetOption, value: OptionValue) -> None:
    with pytest.raises(UsageError):
        option.check(value)


def test_negative_zero_is_stored_as_zero() -> None:
    stored = RATIO.check(-0.0)
    assert isinstance(stored, float)
    assert math.copysign(1.0, stored) == 1.0


@given(st.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_floats_read_back(value: float) -> None:
    assert RATIO.parse(option_text(RATIO.check(value))) == value


@given(st.integers(min_value=1))
def test_integers_read_back(value: int) -> None:
    assert COUNT.parse(option_text(value)) == value


def test_threads_and_optimize_are_registered() -> None:
    assert (TARGET_OPTIONS["threads"].type, TARGET_OPTIONS["optimize"].choices) == (int, (0, 1))


def test_the_same_option_may_be_registered_by_several_toolchains() -> None:
    first = register_option(TargetOption("test_shared", int, "used by two toolchains"))
    assert register_option(TargetOption("test_shared", int, "used by two toolchains")) is first


def test_another_option_of_the_same_name_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        register_option(TargetOption("threads", str, "something else"))
    assert str(caught.value) == "target option 'threads' is already registered"


@pytest.mark.parametrize("name", ["toolchain", "Threads", "a-b", "", "a=b"])
def test_malformed_or_reserved_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        register_option(TargetOption(name, int, "help"))
    assert str(caught.value) == (
        f"target option {name!r} is not a free name of lower case letters, digits and underscores"
    )
    assert name not in TARGET_OPTIONS


@pytest.fixture
def announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OptionRegistry]:
    """The options that a module announces: a right one, and four entry points that are not."""
    (tmp_path / "options_of_a_test.py").write_text(
        "from intarsia.target import TargetOption, register_option\n"
        "GOOD = register_option(TargetOption('test_good', bool, 'one that is registered as well'))\n"
        "TEXT = 'test_text'\n"
    )
    (tmp_path / "broken_options_of_a_test.py").write_text("raise RuntimeError('half installed')\n")
    monkeypatch.syspath_prepend(tmp_path)
    values = {
        "test_good": "options_of_a_test:GOOD",
        "test_other_name": "options_of_a_test:GOOD",
        "test_text": "options_of_a_test:TEXT",
        "test_absent": "options_of_a_test:ABSENT",
        "test_broken": "broken_options_of_a_test:GOOD",
    }
    points = {name: EntryPoint(name, value, "intarsia.target_options") for name, value in values.items()}
    monkeypatch.setattr(TARGET_OPTIONS, "_entry_points", points)
    monkeypatch.setattr(TARGET_OPTIONS, "_values", dict(TARGET_OPTIONS._values))
    assert isinstance(TARGET_OPTIONS, OptionRegistry)
    yield TARGET_OPTIONS
    sys.modules.pop("options_of_a_test", None)


def test_a_module_may_register_the_option_that_it_announces(announced: OptionRegistry) -> None:
    assert announced["test_good"].type is bool
    assert Target("cpu -test_good=true").option("test_good") is True


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "test_other_name",
            "entry point 'test_other_name' of 'intarsia.target_options' is not a TargetOption of this name",
        ),
        (
            "test_text",
            "entry point 'test_text' of 'intarsia.target_options' is not a TargetOption of this name",
        ),
        (
            "test_absent",
            "target option 'test_absent' cannot be loaded: AttributeError: module 'options_of_a_test' has no "
            "attribute 'ABSENT'\n"
            "help: the package that announces it by entry point 'intarsia.target_options' is broken",
        ),
        (
            "test_broken",
            "target option 'test_broken' cannot be loaded: RuntimeError: half installed\n"
            "help: the package that announces it by entry point 'intarsia.target_options' is broken",
        ),
    ],
)
def test_what_is_no_option_is_refused_each_time(announced: OptionRegistry, name: str, expected: str) -> None:
    for _ in range(2):
        with pytest.raises(UsageError) as caught:
            announced[name]
        assert str(caught.value) == expected


def test_broken_packages_leave_the_options_of_others_alone(announced: OptionRegistry) -> None:
    option = TargetOption("test_own", int, "of one toolchain", toolchains=("test_toolchain",))
    announced.register("test_own", option)
    assert toolchain_options("test_toolchain") == (option,)


def test_an_option_that_is_announced_cannot_be_registered_otherwise(announced: OptionRegistry) -> None:
    with pytest.raises(UsageError, match="target option 'test_good' is already registered"):
        register_option(TargetOption("test_good", int, "another"))
    assert announced["test_good"].type is bool
