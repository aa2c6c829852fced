import copy
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.support.errors import UsageError
from intarsia.target import DeviceType, OptionValue, Target, TargetOption, register_option

register_option(TargetOption("test_label", str, "a text"))
register_option(TargetOption("test_flag", bool, "a flag"))
register_option(TargetOption("test_ratio", float, "a ratio"))

LABELS = st.text(min_size=1).filter(lambda text: text.isprintable() and not set(text) & {" ", '"'})
VALUES: dict[str, st.SearchStrategy[OptionValue]] = {
    "threads": st.integers(1, 10**6),
    "optimize": st.integers(0, 1),
    "schedules": LABELS,
    "test_label": LABELS,
    "test_flag": st.booleans(),
    "test_ratio": st.floats(allow_nan=False, allow_infinity=False),
}
OPTIONS = st.fixed_dictionaries({}, optional=VALUES)
TOOLCHAINS = st.none() | st.from_regex(r"[A-Za-z_][A-Za-z0-9_.\-]*", fullmatch=True)
KINDS = st.sampled_from([device_type.kind for device_type in DeviceType])


def message(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        Target(text)
    return str(caught.value)


def test_text_gives_the_fields() -> None:
    target = Target("cpu -toolchain=openvino -threads=2")
    assert (target.kind, target.toolchain, target.options) == ("cpu", "openvino", (("threads", 2),))
    assert target.device_type is DeviceType.CPU


def test_every_spelling_is_the_same_value() -> None:
    spellings = [
        Target("cpu -toolchain=openvino -threads=2 -optimize=0"),
        Target("  cpu  -optimize=0 -threads=2\t-toolchain=openvino "),
        Target("cpu", "openvino", (("threads", 2), ("optimize", 0))),
        Target("cpu -threads=2", "openvino", (("optimize", 0),)),
        Target.parse("cpu -toolchain=openvino -optimize=0 -threads=2"),
        Target.for_toolchain("openvino", threads=2, optimize=0),
        Target.for_toolchain("openvino", optimize=1).with_options(optimize=0, threads=2),
    ]
    assert len(set(spellings)) == 1
    assert str(spellings[0]) == "cpu -toolchain=openvino -optimize=0 -threads=2"


def test_different_targets_differ() -> None:
    texts = ["cpu", "cuda", "cpu -toolchain=a", "cpu -toolchain=b", "cpu -threads=1", "cpu -threads=2"]
    assert len({Target(text) for text in texts}) == len(texts)


@given(KINDS, TOOLCHAINS, OPTIONS)
def test_text_reads_back(kind: str, toolchain: str | None, options: dict[str, OptionValue]) -> None:
    target = Target(kind, toolchain, tuple(options.items()))
    again = Target.parse(str(target))
    assert again == target
    assert hash(again) == hash(target)
    assert str(again) == str(target)


@given(st.text())
def test_any_text_is_a_target_or_a_usage_error(text: str) -> None:
    try:
        target = Target(text)
    except UsageError:
        return
    assert Target(str(target)) == target


def test_repr_is_the_constructor_call() -> None:
    assert (
        repr(Target("cpu -threads=2 -toolchain=openvino")) == "Target('cpu -toolchain=openvino -threads=2')"
    )


def test_is_immutable_and_copies_by_value() -> None:
    target = Target("cpu -toolchain=openvino")
    with pytest.raises(FrozenInstanceError):
        target.kind = "cuda"  # type: ignore[misc]  # the assignment is what must fail
    assert pickle.loads(pickle.dumps(target)) == copy.deepcopy(target) == target
    assert replace(target, toolchain=None) == Target("cpu")


def test_option_gives_the_value_or_the_default() -> None:
    target = Target("cpu -threads=2")
    assert target.option("threads") == 2
    assert target.option("threads", 8) == 2
    assert target.option("optimize", 1) == 1
    assert target.option("optimize") is None


def test_option_checks_name_and_default() -> None:
    with pytest.raises(UsageError) as unknown:
        Target("cpu").option("thread")
    assert str(unknown.value) == "unknown target option 'thread'\nhelp: did you mean threads?"
    with pytest.raises(UsageError) as malformed:
        Target("cpu").option("threads", "many")
    assert malformed.value.problem == "target option -threads is 'many'; expected a whole number, at least 1"


def test_an_unknown_option_is_told_those_of_its_toolchain() -> None:
    with pytest.raises(UsageError) as unknown:
        Target("cpu -toolchain=openvino -bogus=1")
    assert unknown.value.problem == "unknown target option 'bogus'"
    words = unknown.value.help.removeprefix("openvino takes ").split(", ")
    assert {"inference_precision", "threads"} <= set(words)
    assert "prepacking" not in words  # it is one of onnxruntime
    with pytest.raises(UsageError, match="did you mean prepacking") as near:
        Target("cpu", "onnxruntime", (("prepack", True),))
    assert near.value.__notes__ == ['in target "cpu"']
    with pytest.raises(UsageError, match=r"a target without toolchain takes .*threads"):
        Target("cpu -bogus=1")


def test_with_options_sets_and_unsets() -> None:
    target = Target("cpu -toolchain=openvino -threads=2")
    assert target.with_options(threads=1) == Target("cpu -toolchain=openvino -threads=1")
    assert target.with_options(threads=None, optimize=0) == Target("cpu -toolchain=openvino -optimize=0")
    with pytest.raises(UsageError):
        target.with_options(thread=None)


def test_for_toolchain_on_another_kind() -> None:
    assert Target.for_toolchain("tensorrt", "cuda") == Target("cuda -toolchain=tensorrt")


@pytest.mark.parametrize(
    ("this", "other", "refines"),
    [
        ("cpu -toolchain=openvino", "cpu", True),
        ("cpu -toolchain=openvino -threads=1", "cpu -threads=2", True),
        ("cpu", "cpu", False),
        ("cpu", "cpu -toolchain=openvino", False),
        ("cpu -toolchain=openvino", "cpu -toolchain=onnxruntime", False),
        ("cuda -toolchain=tensorrt", "cpu", False),
    ],
)
def test_is_external_codegen_for(this: str, other: str, refines: bool) -> None:
    assert Target(this).is_external_codegen_for(Target(other)) is refines


def test_is_external_codegen() -> None:
    assert Target("cpu -toolchain=openvino").is_external_codegen
    assert not Target("cpu -threads=2").is_external_codegen


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "",
            (
                "a target is empty; expected a device kind and options, "
                'such as "cpu -toolchain=openvino -threads=2"\n  in target ""'
            ),
        ),
        (
            "openvino",
            (
                "unknown device kind 'openvino'\n  in target \"openvino\"\n"
                'help: known: cpu, cuda, mock; if openvino is a toolchain, write "cpu -toolchain=openvino"'
            ),
        ),
        ("cpuu", "unknown device kind 'cpuu'\n  in target \"cpuu\"\nhelp: did you mean cpu?"),
        (
            "cpu -thread=2",
            "unknown target option 'thread'\n  in target \"cpu -thread=2\"\nhelp: did you mean threads?",
        ),
        (
            "cpu -threads=two",
            (
                "target option -threads is 'two'; expected a whole number, at least 1\n"
                '  in target "cpu -threads=two"\nhelp: threads that run one operator, 1 or more'
            ),
        ),
        (
            "cpu -optimize=3",
            (
                'target option -optimize is 3; expected 0 or 1\n  in target "cpu -optimize=3"\n'
                "help: 0: the engine's optimisations off (reference runs), 1: on"
            ),
        ),
        (
            "cpu threads=2",
            "target option 'threads=2' is malformed; expected -name=value\n  in target \"cpu threads=2\"",
        ),
        (
            "cpu -threads",
            "target option '-threads' is malformed; expected -name=value\n  in target \"cpu -threads\"",
        ),
        (
            "cpu -threads=1 -threads=2",
            'target option -threads is given 2 times; expected once\n  in target "cpu -threads=1 -threads=2"',
        ),
        (
            "cpu -toolchain=a -toolchain=a",
            (
                "target option -toolchain is given 2 times; expected once\n"
                '  in target "cpu -toolchain=a -toolchain=a"'
            ),
        ),
        (
            "cpu -toolchain=a/b",
            (
                "'a/b' is not a toolchain's name; expected letters, digits, '_', '-' and '.'\n"
                '  in target "cpu -toolchain=a/b"'
            ),
        ),
    ],
)
def test_malformed_text(text: str, expected: str) -> None:
    assert message(text) == expected


def test_text_and_argument_must_not_both_set_something() -> None:
    with pytest.raises(UsageError, match="-toolchain is given 2 times"):
        Target("cpu -toolchain=openvino", "onnxruntime")
    with pytest.raises(UsageError, match="-threads is given 2 times"):
        Target("cpu -threads=2", options=(("threads", 2),))


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("openvino", Target("cpu", "openvino")),
        ("cpu -toolchain=openvino -threads=2", Target("cpu", "openvino", (("threads", 2),))),
        ("cpu", Target("cpu")),
    ],
)
def test_a_toolchain_is_a_target_of_the_cpu(text: str, target: Target) -> None:
    assert Target.of_text(text) == target
