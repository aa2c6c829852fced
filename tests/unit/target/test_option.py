import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.support.errors import UsageError
from intarsia.target import TARGET_OPTIONS, OptionValue, TargetOption, register_option
from intarsia.target.option import option_text

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
