"""Options that belong to toolchains, and how packages announce theirs."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest
from tests.each_case import each_case
from tests.speed_options import SPEED_OPTIONS

from intarsia.support.errors import UsageError
from intarsia.target import TARGET_OPTIONS, Target, TargetOption, toolchain_options

NAMES = [option.name for option in SPEED_OPTIONS]
ROOMS = ("native", "onnxruntime", "openvino", "torch")


@each_case("option", SPEED_OPTIONS)
def test_each_option_of_speed_has_a_default_and_other_values(option: TargetOption) -> None:
    assert TARGET_OPTIONS[option.name] is option
    assert option.default in option.values
    assert len(option.values) > 1


@each_case("option", SPEED_OPTIONS)
def test_only_its_toolchain_understands_it(option: TargetOption) -> None:
    (own,) = option.toolchains
    target = Target("cpu", own, ((option.name, option.values[-1]),))
    assert Target(str(target)) == target
    for other in ("reference", None):
        with pytest.raises(UsageError, match=f"does not understand -{option.name}; expected {own}"):
            Target("cpu", other, ((option.name, option.values[-1]),))


def test_the_error_names_target_and_meaning() -> None:
    with pytest.raises(UsageError) as caught:
        Target("cpu -toolchain=openvino -spinning=false")
    assert str(caught.value) == (
        "toolchain openvino does not understand -spinning; expected onnxruntime\n"
        '  in target "cpu -toolchain=openvino -spinning=false"\n'
        "help: whether threads wait busily within a run"
    )


def test_a_plain_target_has_no_options_of_toolchains() -> None:
    with pytest.raises(UsageError, match="a target without toolchain does not understand -llvm_level"):
        Target("cpu -llvm_level=2")


def test_precision_is_no_option_of_speed() -> None:
    option = TARGET_OPTIONS["inference_precision"]
    assert not option.keeps_results
    assert option not in SPEED_OPTIONS


def test_options_of_speed_by_toolchain() -> None:
    names = {room: [option.name for option in SPEED_OPTIONS if room in option.toolchains] for room in ROOMS}
    assert names == {
        "native": ["attention", "blocked", "fused", "llvm_level", "llvm_passes", "prefetch", "wide_vectors"],
        "onnxruntime": ["dynamic_blocks", "graph_level", "memory_arena", "prepacking", "spinning"],
        "openvino": ["core_type", "hyper_threading", "partitioner"],
        "torch": [],
    }


@pytest.mark.parametrize("room", ROOMS)
def test_every_option_of_a_room_is_announced_under_its_name(room: str) -> None:
    module = __import__(f"intarsia.toolchain.{room}.options", fromlist=["options"])
    options = {value.name: value for value in vars(module).values() if isinstance(value, TargetOption)}
    points = {
        point.name for point in entry_points(group="intarsia.target_options") if f".{room}." in point.value
    }
    assert set(options) == points
    assert all(TARGET_OPTIONS[name] is option for name, option in options.items())
    assert toolchain_options(room) == tuple(options[name] for name in sorted(options) if name != "schedules")


PARSE = """
import sys
from intarsia.target import Target
for text in sys.argv[1:]:
    assert str(Target(text)) == text
print(*sorted(name for name in sys.modules if name.startswith("intarsia.toolchain")))
print(*({"onnxruntime", "openvino", "llvmlite", "torch", "onnx"} & set(sys.modules)))
"""


def imported_for(*texts: str) -> list[str]:
    """The modules of toolchains, and the engines, that a new process imports to parse targets."""
    done = subprocess.run([sys.executable, "-c", PARSE, *texts], capture_output=True, text=True, check=True)
    toolchains, engines = done.stdout.split("\n")[:2]
    assert engines == ""
    return toolchains.split()


def test_parsing_an_option_imports_the_options_of_its_toolchain_alone() -> None:
    assert imported_for("cpu -toolchain=onnxruntime -threads=2") == []
    texts = ("cpu -toolchain=onnxruntime -spinning=false", "cpu -toolchain=native -fused=false")
    assert imported_for(*texts) == [
        "intarsia.toolchain",
        "intarsia.toolchain.native",
        "intarsia.toolchain.native.options",
        "intarsia.toolchain.onnxruntime",
        "intarsia.toolchain.onnxruntime.options",
    ]
