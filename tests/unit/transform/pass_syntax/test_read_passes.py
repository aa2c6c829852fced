"""Every pass is text that reads back, and what is wrong in a text is pointed at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each_case import each_case

from intarsia.collage.placement.placement import Composite, Partition, Placement
from intarsia.collage.tune_device_placement import CopyCost
from intarsia.ir import IRModule
from intarsia.passes import FoldConstant, FuseOps, InferType
from intarsia.support.errors import UsageError
from intarsia.transform import (
    ApplyPassToFunction,
    ModulePass,
    Pass,
    PassContext,
    Sequential,
    get_pass,
    load_pass_sequence,
    pass_names,
    pipeline_names,
    read_passes,
)
from intarsia.transform.pass_registry import create_pass, holding_pass, registered_pass
from intarsia.transform.pass_syntax.option_hint import OptionHint, option_hints, type_text
from intarsia.transform.pass_syntax.parser import DEEPEST
from intarsia.transform.pass_syntax.source_text import PassTextError
from intarsia.transform.pass_text import changed_options, pass_text
from intarsia.tune.passes import TuneConvolutions, TuneLayout, TunePacking, TuneSubgraphs
from intarsia.tune.strategy import Beam, EvolutionarySearch, SearchLimits

DEVICES: Final = tuple(f'VirtualDevice(cpu:{number}, target="cpu -toolchain=reference")' for number in (0, 1))
VALUES: Final[Mapping[tuple[str, str], object]] = {
    ("BindDims", "sizes"): ("batch=2", "a b=0"),
    ("CalibrateQuantization", "method"): "entropy",
    ("CalibrateQuantization", "percentile"): 99.5,
    ("CalibrateQuantization", "record"): '{"0":[-1.0,2.5]}',
    ("SmoothActivations", "alpha"): 0.75,
    ("SmoothActivations", "record"): '{"0":[3,0,-1]}',
    ("SpecializeSizes", "sizes"): ("batch=2", "a b=0"),
    ("SpecializeSizes", "target"): "cpu -toolchain=native",
    ("CacheInPlace", "capacities"): (16, 32),
    ("CacheInPlace", "chunks"): (1, 8),
    ("SpecializeCache", "sizes"): ("batch=2", "a b=0"),
    ("SpecializeCache", "target"): "cpu -toolchain=native",
    ("ConvertLayout", "layout"): "NHWC",
    ("ConvertLayout", "operators"): ("Conv",),
    ("TuneLayout", "operators"): ("Conv", "MaxPool"),
    ("ToMixedPrecision", "dtype"): "bfloat16",
    ("ToMixedPrecision", "keep"): ("Softmax",),
    ("ToMixedPrecision", "layers"): (0, 3),
    ("ToMixedPrecision", "lower"): ("Conv", "MatMul"),
    ("TuneCombineParallel", "convolutions"): False,
    ("TuneCombineParallel", "matmuls"): True,
    ("TuneFlags", "flags"): ("prefetch",),
    ("TuneKernelsJointly", "passes"): (TunePacking(limits=SearchLimits(trials=3)), TuneConvolutions()),
    ("TuneLibraries", "least_share"): 0.5,
    ("TuneRewrite", "rules"): ("product_as_gemm",),
    ("TuneQuantization", "layers"): ("all", "0 3 bfloat16 1"),
    ("TuneQuantization", "method"): "mse",
    ("TuneQuantization", "record"): '{"0":[-1.0,2.5]}',
    ("TuneQuantization", "smoothing"): '{"0":[3,0,-1]}',
    ("TuneSchedule", "least_share"): 0.5,
    ("TuneSchedule", "share"): 0.75,
    ("TuneSchedule", "target"): "cpu -toolchain=native -threads=2",
    ("PartitionWhole", "target"): 'cpu -toolchain="a b"',
    ("TuneConvolutions", "algorithms"): ("winograd_2", "direct"),
    ("TuneLayout", "layouts"): ("NHWC", "none"),
    ("TunePipeline", "pipelines"): ("default_heuristic", "none"),
    ("TunePlacement", "targets"): ("reference", "onnxruntime"),
    ("TunePlacement", "target_passes"): (("reference", (TuneLayout(),)),),
    ("TunePlacement", "toolchain_passes"): (("reference", (FoldConstant(),)), ("onnxruntime", ())),
    ("TunePrecision", "precisions"): ("bfloat16",),
    ("TuneDevicePlacement", "devices"): DEVICES,
    ("TuneDevicePlacement", "toolchains"): ("reference",),
}
"""Values of options that only take some; a pass that refuses the value of `BY_TYPE` needs one here."""

AS_BY_DEFAULT: Final = {("TuneCombineParallel", "matmuls")}
"""Options that other ones force to their default."""


PART: Final = Partition("main", "reference", (1, 2), "Conv+Relu", (Composite("acme.x", (1,)),))
INNER: Final = (TuneLayout((InferType(),), strategy=Beam(2)), FuseOps(max_depth=3), get_pass("FoldScaleAxis"))
BY_TYPE: Final[Mapping[str, object]] = {
    "int": 7,
    "float": 2.5,
    "str": "cpu \"-x\" 'é'\n\\",
    "[int, ...]": (3, 5),
    "[str, ...]": ("a b", "Neg"),
    "Pass": Sequential([FoldConstant(5)], name="a row"),
    "[Pass, ...]": INNER,
    "[Placement, ...]": (Placement((PART,)),),
    "Strategy": EvolutionarySearch(seed=3, mutation=0.5),
    "CopyCost": CopyCost(1e-5, 1e-10),
    "SearchLimits": SearchLimits(trials=5, seconds=1e-3),
}
"""A value of each type of options; a type that is missing fails the test of the pass that has it."""


def other_value(name: str, option: OptionHint) -> object:
    """A value of an option that is not the default."""
    if (name, option.name) in VALUES:
        return VALUES[name, option.name]
    return (
        not option.default if option.hint is bool else BY_TYPE[type_text(option.hint).removesuffix(" | None")]
    )


def changed_pass(name: str) -> Pass:
    """The pass of a name with no option as by default."""
    registered = registered_pass(name)
    values = {option.name: other_value(name, option) for option in option_hints(registered)}
    return registered if isinstance(registered, Pass) else create_pass(name, **values)


@pytest.mark.parametrize("name", pass_names())
def test_every_pass_reads_back_with_all_its_options(name: str) -> None:
    item = changed_pass(name)
    changed = changed_options(item)
    assert all(hint.name in changed for hint in option_hints(item) if (name, hint.name) not in AS_BY_DEFAULT)
    read = get_pass(pass_text(item))
    assert read == item
    assert repr(read) == repr(item)
    assert str(read) == str(item)


@pytest.mark.quick_cases(20)
@pytest.mark.parametrize("name", pass_names())
def test_every_pass_reads_back_inside_others(name: str) -> None:
    row = Sequential([changed_pass(name), InferType()], "x y", opt_level=1, required=("InferType",))
    around = TuneSubgraphs((row, TuneLayout((changed_pass(name),))), passes=(row,))
    (read,) = read_passes(str(around))
    assert read == around
    assert repr(read) == repr(around)


@pytest.mark.parametrize("name", pipeline_names())
def test_every_pipeline_reads_back_from_what_is_printed(name: str) -> None:
    sequence = load_pass_sequence(name)
    assert get_pass(str(sequence)) == get_pass(repr(sequence)) == get_pass(name) == sequence


def test_depth() -> None:
    item: Pass = FoldConstant(max_bytes=3)
    for _ in range(DEEPEST // 2 - 1):
        item = TuneLayout((item,))
    assert get_pass(str(item)) == item
    deeper = str(TuneLayout((item,)))
    with pytest.raises(PassTextError, match=f"more than {DEEPEST} brackets are open here"):
        get_pass(deeper)
    with pytest.raises(PassTextError, match=f"more than {DEEPEST} brackets are open here"):
        read_passes("[" * 100_000)


@dataclass(frozen=True)
class WithAll(ModulePass, opt_level=0):
    """A pass with an option of each type."""

    text: str = ""
    number: float = 0.5
    whole: int | None = None
    flag: bool = False
    texts: tuple[str, ...] = ()
    pair: tuple[int, str] = (0, "")
    names: frozenset[str] = frozenset()
    anything: object = None
    inner: Pass | None = None
    called: object = field(default=print, repr=False, compare=False)

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return mod


@given(
    st.builds(
        WithAll,
        text=st.text(),
        number=st.floats(allow_nan=False),
        whole=st.none() | st.integers(),
        flag=st.booleans(),
        texts=st.lists(st.text()).map(tuple),
        pair=st.tuples(st.integers(), st.text()),
        names=st.frozensets(st.text()),
        anything=st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(), lambda one: st.lists(one).map(tuple)
        ),
        inner=st.none() | st.builds(FoldConstant, st.integers()),
    )
)
def test_all_values_read_back(item: WithAll) -> None:
    with holding_pass("WithAll", WithAll):
        read = get_pass(str(item))
    assert read == item
    assert str(read) == str(item)


@pytest.mark.parametrize(
    "text",
    [
        "FoldConstant{max_bytes=3}",
        " FoldConstant { max_bytes = 3 , } , ",
        "'FoldConstant'{max_bytes=+3}",
        "FoldConstant\n{\n  max_bytes=0_3\n}",
    ],
)
def test_spaces_and_further_commas(text: str) -> None:
    assert read_passes(text) == (FoldConstant(3),)


def test_short_texts_need_no_quotation_marks() -> None:
    assert get_pass("TuneLayout{layouts=[none,NHWC]}") == TuneLayout(layouts=("none", "NHWC"))
    assert get_pass("TuneLayout{layouts=['none']}") == TuneLayout(layouts=("none",))


def test_a_pipeline_is_an_element() -> None:
    first, second = read_passes("default_heuristic, Sequential{passes=[default_tir]}")
    assert first == load_pass_sequence("default_heuristic")
    assert second == Sequential([load_pass_sequence("default_tir")])


def test_no_passes() -> None:
    assert read_passes(" ") == ()


def test_options_beside_the_text() -> None:
    limits = SearchLimits(trials=7)
    item = get_pass("TuneLayout{layouts=[NHWC]}", limits=limits)
    assert isinstance(item, TuneLayout)
    assert item.limits is limits
    assert item.layouts == ("NHWC",)


MISTAKES: Final = [
    ("TuneLayot", "unknown pass 'TuneLayot'", 0, "did you mean TuneLayout"),
    ("TuneLayout, Foldconst", "unknown pass 'Foldconst'", 12, "did you mean FoldConstant"),
    ("Xyz", "unknown pass 'Xyz'", 0, "`intarsia passes` lists them"),
    (
        "TuneLayout{layout=3}",
        "TuneLayout has no option 'layout'",
        11,
        "did you mean layouts? its options: eval_",
    ),
    ("InferType{a=3}", "InferType has no option 'a'", 10, "its options: none"),
    ("default_tir{a=3}", "default_tir has no option 'a'", 12, "its options: none"),
    ("FuseOps{max_depth=1, max_depth=2}", "FuseOps has the option 'max_depth' twice", 21, ""),
    ("TuneLayout{layouts=NHWC}", "found NHWC, expected layouts: [str, ...]", 19, ""),
    ("TuneLayout{layouts=[NHWC, 3]}", "found the number 3, expected layouts: str", 26, ""),
    ("FoldConstant{max_bytes=1.5}", "found the number 1.5, expected max_bytes: int", 23, ""),
    ("FoldConstant{max_bytes=True}", "found True, expected max_bytes: int", 23, ""),
    ('FuseOps{max_depth="1"}', 'found the text "1", expected max_depth: int | None', 18, ""),
    ("Inline{literals=1}", "found the number 1, expected literals: bool", 16, ""),
    ("TuneLayout{eval_passes=[3]}", "found the number 3, expected a pass", 24, ""),
    ("TuneLayout{strategy=Beem{width=3}}", "unknown Strategy 'Beem'", 20, "did you mean Beam?"),
    ("TuneLayout{strategy=SearchLimits}", "unknown Strategy 'SearchLimits'", 20, "known: Beam, "),
    ("TuneLayout{strategy=3}", "found the number 3, expected strategy: Strategy", 20, ""),
    ("TuneLayout{strategy=Beam{width=0}}", "a beam of width 0", 20, ""),
    (
        "TuneLayout{strategy=Beam{with=2}}",
        "Beam has no option 'with'",
        25,
        "did you mean width? its options: width",
    ),
    ("TunePrecision", "TunePrecision needs tolerance: float", 0, "write TunePrecision{tolerance=...}"),
    ("MergeComposite{}", "MergeComposite needs toolchain: str", 0, "write MergeComposite{toolchain=...}"),
    ("FoldConstant(max_bytes=3)", "found '('", 12, "options stand in braces"),
    (
        "FoldConstant{max_bytes: 3}",
        "found ':', which begins no name or value",
        22,
        "put text in quotation marks",
    ),
    ("FoldConstant{max_bytes 3}", "found '3', expected '=' and a value after max_bytes", 23, ""),
    ("FoldConstant{3}", "found '3', expected the name of an option", 13, ""),
    ("FoldConstant{", "found the end of the text, expected the name of an option", 13, ""),
    ("TuneLayout{layouts=[a", "found the end of the text, expected ',' or ']'", 21, ""),
    ("InferType FoldConstant", "found 'FoldConstant', expected ',' or the end of the text", 10, ""),
    ("InferType}", "found '}', expected ',' or the end of the text", 9, ""),
    (", InferType", "found ',', expected a pass or a value", 0, ""),
    ('ConvertLayout{layout="NHWC}', 'the quotation mark " is not closed', 21, 'add " behind the text'),
    ("A{a=<object>}", "a value between angle brackets cannot be read", 4, "make this pass in Python"),
    (
        "TunePlacement{toolchain_passes=[[native,[TuneLayuot]]]}",
        "unknown pass 'TuneLayuot'",
        41,
        "did you mean TuneLayout",
    ),
]


@each_case(("text", "problem", "position", "advice"), MISTAKES)
def test_mistakes_are_pointed_at(text: str, problem: str, position: int, advice: str) -> None:
    with pytest.raises(PassTextError) as caught:
        read_passes(text)
    first, line, caret = caught.value.problem.splitlines()
    assert first.startswith(problem)
    assert line == f"  {text}"
    assert caret == f"  {' ' * position}^"
    assert caught.value.help.startswith(advice)
    assert bool(caught.value.help) or not advice


def test_the_line_with_the_mistake() -> None:
    with pytest.raises(PassTextError) as caught:
        read_passes("InferType,\n  FoldConstnat,\n  InferType")
    assert caught.value.problem.splitlines()[1:] == ["    FoldConstnat,", "    ^"]


def test_get_pass_takes_one() -> None:
    with pytest.raises(
        UsageError, match="found 2 passes, expected one\n  InferType, FoldConstant\n             \\^"
    ):
        get_pass("InferType, FoldConstant")
    with pytest.raises(UsageError, match="found no pass"):
        get_pass("")
    with pytest.raises(UsageError, match="get_pass takes the name or text of a pass, got 3"):
        get_pass(3)  # type: ignore[arg-type]


def test_a_list_in_place_of_a_pass() -> None:
    with pytest.raises(PassTextError, match="found a list, expected a pass"):
        get_pass("ApplyPassToFunction{applied=[InferType], pattern=main}")
    item = get_pass("ApplyPassToFunction{applied=Sequential{passes=[InferType]}, pattern=main}")
    assert item == ApplyPassToFunction(Sequential([InferType()]), "main")
