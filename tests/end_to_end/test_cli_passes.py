"""`intarsia passes` and `intarsia bisect`: what there is, and which pass is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.end_to_end.command_line import Outcome, process, within
from tests.end_to_end.installed_packages import found_in, install_module

from intarsia import load
from intarsia.ir import Call, Expr, Function, IRModule, Op, rewrite
from intarsia.native.tir.unroll_loop import UNROLL_LOOP
from intarsia.op import call, rewrite_typed
from intarsia.support.errors import UnsupportedModelError
from intarsia.transform import (
    FunctionPass,
    ModulePass,
    PassContext,
    PassSettings,
    Sequential,
    load_pass_sequence,
    pass_names,
)
from intarsia.transform.pass_registry import holding_pass
from intarsia.transform.pipeline import holding_pipeline

pytestmark = pytest.mark.quick_tests(14, also=["test_an_option_type_is_described"])

WRONG = """
from intarsia.ir import Call, Op
from intarsia.op import rewrite_typed
from intarsia.transform import Sequential, function_pass, register_pass, register_pipeline

def relu_is_its_input(expr):
    match expr:
        case Call(op=Op(name="Relu"), args=(x,)):
            return x
    return expr

@function_pass(opt_level=3)
def drop_relu(function, mod, ctx):
    return rewrite_typed(function, relu_is_its_input)

register_pass(drop_relu)

@register_pipeline("wrong")
def wrong():
    return Sequential([drop_relu])
"""


@dataclass(frozen=True)
class DropRelu(FunctionPass, opt_level=3):
    """Replaces each Relu by its input, which is wrong."""

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        after = rewrite_typed(function, _dropped)
        assert isinstance(after, Function)
        return after


@dataclass(frozen=True)
class ReluTwice(FunctionPass, opt_level=1):
    """Applies each Relu twice, which is right."""

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        after = rewrite(function, _doubled)
        assert isinstance(after, Function)
        return after


@dataclass(frozen=True)
class Fails(ModulePass, opt_level=0):
    """Refuses every module."""

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        raise UnsupportedModelError("not this one")


@dataclass(frozen=True)
class Crashes(ModulePass, opt_level=0):
    """Divides by zero."""

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        raise ZeroDivisionError("division by zero")


def _dropped(expr: Expr) -> Expr:
    match expr:
        case Call(op=Op(name="Relu"), args=(x,)):
            return x
        case _:
            return expr


def _doubled(expr: Expr) -> Expr:
    match expr:
        case Call(op=Op(name="Relu")):
            return call("Relu", expr)
        case _:
            return expr


@pytest.fixture
def passes() -> Iterator[None]:
    """The passes above can be found by name."""
    with (
        holding_pass("DropRelu", DropRelu),
        holding_pass("ReluTwice", ReluTwice),
        holding_pass("Fails", Fails),
        holding_pass("Crashes", Crashes),
    ):
        yield


def bisected(*names: str, flags: tuple[str, ...] = ()) -> Outcome:
    chosen = [word for name in names for word in ("--pass", name)]
    return within(["bisect", "zoo:mnist", *chosen, *flags])


class TestPasses:
    def test_the_list(self) -> None:
        outcome = within(["passes"])
        assert (outcome.code, outcome.err) == (0, "")
        header, *rows = outcome.out.split("\n\n")[0].splitlines()
        assert header.split() == ["pass", "level", "description"]
        assert [row.split()[0] for row in rows] == list(pass_names())
        assert all(len(row.split()) > 3 for row in rows), "every pass says what it does"

    def test_the_list_as_json(self) -> None:
        document = within(["passes", "--json"]).document
        (found,) = (item for item in document["passes"] if item["name"] == "InferType")
        assert found == {
            "name": "InferType",
            "opt_level": 0,
            "required": [],
            "summary": "Fills in the types that are not known, and checks the others (DESIGN section 2).",
        }
        assert document["broken_packages"] == []
        (found,) = (item for item in document["config"] if item["key"] == "FuseOps.max_depth")
        assert (found["type"], found["default"]) == ("int", "256")

    def test_a_pipeline_that_cannot_be_made_takes_nothing_else_down(self) -> None:
        def fails() -> Sequential:
            raise RuntimeError("half written")

        with holding_pipeline("mine", fails):
            outcome = within(["passes"])
            document = within(["passes", "--json"]).document
        assert (outcome.code, outcome.out.splitlines()[-1]) == (0, "cannot be made: mine: half written")
        assert document["broken_pipelines"] == ["mine: half written"]
        assert "default_heuristic" in document["pipelines"]

    def test_a_pass_is_described(self) -> None:
        outcome = within(["passes", "AnnotateTarget"])
        assert (outcome.code, outcome.err) == (0, "")
        lines = outcome.out.splitlines()
        assert lines[:3] == [
            "AnnotateTarget, level 0",
            "required: InferType",
            "option toolchains: [str, ...], needed",
        ]
        assert "Before:" in lines
        document = within(["passes", "AppendRelu", "--json"]).document
        assert document["exit_code"] == 2
        document = within(["passes", "ToMixedPrecision", "--json"]).document
        assert (document["opt_level"], document["constraints"]) == (0, {"required": ["InferType"]})
        assert document["options"][0] == {"name": "dtype", "type": "str", "default": '"float16"'}

    def test_a_registered_sequence_is_described_by_its_passes(self) -> None:
        outcome = within(["passes", "FoldScaleAxis"])
        assert outcome.code == 0
        assert outcome.out.startswith(
            'FoldScaleAxis, level 2\n\nSequential{name="FoldScaleAxis", opt_level=2, passes=['
        )

    def test_options_are_described_in_the_syntax_of_passes(self) -> None:
        lines = within(["passes", "TuneLayout"]).out.splitlines()
        assert "option strategy: Strategy = Exhaustive" in lines
        assert 'option layouts: [str, ...] = ["none", "NCHW", "NHWC"]' in lines
        assert any(line.startswith("each Strategy is: Beam, ") for line in lines)

    def test_an_option_type_is_described(self) -> None:
        outcome = within(["passes", "Beam"])
        assert outcome.code == 0
        assert outcome.out.startswith("Beam, an option of passes\noption width: int = 4\n\n")
        document = within(["passes", "Beam", "--json"]).document
        assert document["options"] == [{"name": "width", "type": "int", "default": "4"}]

    def test_the_nearest_names(self) -> None:
        assert within(["passes", "FoldConstnat"]) == Outcome(
            2,
            "",
            "error: no pass or pipeline is named 'FoldConstnat'\nhelp: did you mean FoldConstant?\n",
        )

    @pytest.mark.slow
    def test_a_pipeline_is_explained(self, tmp_path: Path) -> None:
        env = found_in(install_module(tmp_path, "wrong_passes", WRONG))
        assert process("passes", "wrong", cwd=tmp_path, env=env) == Outcome(
            0, "         pass       reason\nskipped  drop_relu  level 3 > 2\n", ""
        )
        assert process("passes", "wrong", "--opt-level", "3", "--json", cwd=tmp_path, env=env).document == {
            "pipeline": "wrong",
            "opt_level": 3,
            "passes": [{"name": "drop_relu", "runs": True, "reason": "level 3 <= 3", "depth": 0}],
        }

    def test_an_unknown_pipeline(self) -> None:
        outcome = within(["passes", "none such"])
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err == (
            "error: no pass or pipeline is named 'none such'\nhelp: `intarsia passes` lists them\n"
        )


@pytest.mark.usefixtures("passes")
class TestBisect:
    def test_the_wrong_pass_is_named_with_what_it_changed(self) -> None:
        outcome = bisected("ReluTwice", "DropRelu", "InferType")
        assert outcome.code == 4
        rows = [line.split()[:3] for line in outcome.out.splitlines()[1:4]]
        assert rows == [
            ["ReluTwice", "changed", "right"],
            ["DropRelu", "changed", "wrong"],
            ["InferType", "unchanged", "-"],
        ]
        assert 'output "logits"' in outcome.out.splitlines()[2]
        assert "reference result: onnx.reference, confirmed by " in outcome.out
        assert "\nwhat DropRelu changed:\n--- before DropRelu\n+++ after DropRelu\n" in outcome.out
        assert "\n-  %" in outcome.out
        assert outcome.err == (
            "error: DropRelu is the first pass of ReluTwice, DropRelu, InferType "
            "after which the program is wrong\n"
            "help: see what it changed above\n"
        )

    def test_as_json(self) -> None:
        outcome = bisected("DropRelu", "ReluTwice", flags=("--json", "--exhaustive"))
        document = outcome.document
        assert (outcome.code, document["exit_code"]) == (4, 4)
        assert (document["guilty"], document["raised"], document["runs"]) == ("DropRelu", None, 1)
        assert document["error"].startswith("DropRelu is the first pass")
        assert document["diff"].startswith("--- before DropRelu\n")
        found = [(item["name"], item["changed"], item["right"]) for item in document["passes"]]
        assert found == [("DropRelu", True, False), ("ReluTwice", False, None)]
        assert document["passes"][0]["max_error"] > 0

    def test_every_pass_is_right(self) -> None:
        outcome = bisected("ReluTwice", "ReluTwice", flags=("--exhaustive",))
        assert (outcome.code, outcome.err) == (0, "")
        assert [line.split()[2] for line in outcome.out.splitlines()[1:3]] == ["right", "right"]
        assert outcome.out.endswith("right after every pass; programs run: 2\n")

    def test_what_has_not_been_looked_at_is_not_called_right(self) -> None:
        end = "right after the last pass (--exhaustive looks at all); programs run: 1\n"
        assert bisected("ReluTwice", "ReluTwice").out.endswith(end)
        assert bisected("InferType").out.endswith("\nno pass changed the program\n")

    def test_an_engine_may_run_the_programs(self) -> None:
        pytest.importorskip("onnxruntime", reason="it runs the programs")
        outcome = bisected("ReluTwice", "DropRelu", flags=("--toolchain", "onnxruntime"))
        assert outcome.code == 4
        assert "error: DropRelu is the first pass" in outcome.err

    def test_a_pass_that_fails(self) -> None:
        message = "error: not this one\n  in pass Fails\n  in pass ReluTwice, Fails\n"
        outcome = bisected("ReluTwice", "Fails")
        assert (outcome.code, outcome.err) == (3, message)
        row = outcome.out.splitlines()[2].split()
        assert row == ["Fails", "raised", "-", "-", "UnsupportedModelError"]

    def test_a_pass_with_a_bug(self) -> None:
        outcome = bisected("ReluTwice", "Crashes")
        assert outcome.code == 4
        assert outcome.err == (
            f"error: Crashes raised ZeroDivisionError: division by zero (module {__name__})\n"
            "help: report it to the author of the pass; --debug shows the traceback\n"
        )
        debugged = bisected("ReluTwice", "Crashes", flags=("--debug",))
        assert 'raise ZeroDivisionError("division by zero")' in debugged.err
        document = bisected("ReluTwice", "Crashes", flags=("--json",)).document
        assert document["raised_by"] == {
            "name": "Crashes",
            "type": "ZeroDivisionError",
            "text": "division by zero",
            "module": __name__,
            "package": None,
        }

    def test_a_pass_that_fails_after_a_wrong_one(self) -> None:
        outcome = bisected("DropRelu", "Fails")
        assert outcome.code == 4
        failure = f"Fails raised UnsupportedModelError: not this one (module {__name__})"
        assert f"\na later pass has failed: {failure}\n" in outcome.out
        document = bisected("DropRelu", "Fails", flags=("--json",)).document
        assert document["raised"].startswith("not this one\n")

    @pytest.mark.slow
    def test_a_wrong_pass_of_a_package(self, tmp_path: Path) -> None:
        env = found_in(install_module(tmp_path, "wrong_passes", WRONG))
        outcome = process(
            "bisect", "zoo:mnist", "--pipeline", "wrong", "--opt-level", "3", cwd=tmp_path, env=env
        )
        assert outcome.code == 4
        assert outcome.err.startswith("error: drop_relu is the first pass of wrong after which")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                ["--pass", "InferTypes"],
                "unknown pass 'InferTypes'\n  InferTypes\n  ^\nhelp: did you mean InferType?\n",
            ),
            (
                ["--pass", "Fails", "--pipeline", "x"],
                "both --pipeline and --pass are given\nhelp: give one of them\n",
            ),
            (["--pass", "Fails", "--toolchain", "none"], "unknown toolchain 'none'"),
        ],
    )
    def test_what_is_given_wrongly(self, arguments: list[str], message: str) -> None:
        outcome = within(["bisect", "zoo:mnist", *arguments])
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith(f"error: {message}")

    def test_an_unknown_pipeline(self) -> None:
        outcome = within(["bisect", "zoo:mnist", "--pipeline", "none such"])
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith("error: unknown pipeline 'none such'\nhelp: ")

    def test_an_artifact(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from intarsia.build import build
        from intarsia.frontend.onnx import from_onnx
        from intarsia.frontend.zoo import build_model

        monkeypatch.chdir(tmp_path)
        build(from_onnx(build_model("mnist"))).save("mnist.intarsia")
        assert within(["bisect", "mnist.intarsia", "--pass", "Fails"]) == Outcome(
            2, "", "error: an artifact is compiled already\nhelp: pass the model that it was tuned from\n"
        )


class TestOpt:
    def test_the_program_after_the_passes(self) -> None:
        text = "InferType, FoldConstant{max_bytes=1024}"
        outcome = within(["opt", "zoo:mnist", "--passes", text])
        assert (outcome.code, outcome.err) == (0, "")
        assert "def @main(%x: Tensor[(1, 1, 28, 28), float32]" in outcome.out
        document = within(["opt", "zoo:mnist", "--passes", text, "--json"]).document
        assert document["passes"] == ["InferType", "FoldConstant{max_bytes=1024}"]
        assert outcome.out == f"{document['program']}\n"

    def test_what_sequences_print_is_read(self) -> None:
        named = within(["opt", "zoo:mnist", "--passes", "default_heuristic"])
        printed = within(["opt", "zoo:mnist", "--passes", str(load_pass_sequence("default_heuristic"))])
        assert named.code == 0
        assert named.out == printed.out == within(["opt", "zoo:mnist"]).out

    @pytest.mark.usefixtures("passes")
    def test_levels_and_disabled_passes(self) -> None:
        relus = [
            within(["opt", "zoo:mnist", "--passes", "DropRelu", *flags]).out.count("Relu(")
            for flags in ([], ["--disable", "DropRelu"])
        ]
        assert relus[0] == 0 < relus[1]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                ["--passes", "FoldConstant{max_byte=3}"],
                "FoldConstant has no option 'max_byte'\n  FoldConstant{max_byte=3}\n               ^\n"
                "help: did you mean max_bytes? its options: max_bytes: int = 16777216\n",
            ),
            (
                ["--passes", "default_heuristic, TuneLayout{layouts=[NHWC]}"],
                "TuneLayout decides by measuring\n"
                "help: intarsia tune zoo:mnist --passes 'TuneLayout{layouts=[\"NHWC\"]}'\n",
            ),
            (
                ["--disable", "FoldConstant{}"],
                "disabled_pass has 'FoldConstant{}', expected the name of a pass\nhelp: write 'FoldConstant'",
            ),
        ],
    )
    def test_what_is_given_wrongly(self, arguments: list[str], message: str) -> None:
        outcome = within(["opt", "zoo:mnist", *arguments])
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith(f"error: {message}")


def test_tune_reads_nested_passes_before_it_imports_the_model() -> None:
    text = "TunePlacement{eval_passes=[TuneLayout,TuneSchedul]}"
    outcome = within(["tune", "no_such_model.onnx", "--passes", text])
    assert outcome == Outcome(
        2,
        "",
        f"error: unknown pass 'TuneSchedul'\n  {text}\n  {' ' * text.index('TuneSchedul')}^\n"
        "help: did you mean TuneSchedule?\n",
    )


@pytest.mark.usefixtures("passes")
def test_bisect_reads_options() -> None:
    outcome = bisected("InferType, FoldConstant{max_bytes=64}", "ReluTwice")
    names = [line.split()[0] for line in outcome.out.splitlines()[1:5]]
    assert names == [
        "InferType",
        "InferType",
        "FoldConstant",
        "ReluTwice",
    ]  # FoldConstant requires the second


@pytest.mark.processes
def test_tune_builds_under_the_settings_of_the_command_line(tmp_path: Path) -> None:
    file = str(tmp_path / "mnist.intarsia")
    words = ["tune", "zoo:mnist", "-o", file, "--target", "native", "--threads", "1", "--budget", "0.2", "-q"]
    settings = ["--disable-pass", "StorageRewrite", "--pass-config", "tir.UnrollLoop.auto_max_step=8"]
    tuned = within([*words, *settings, "--database", str(tmp_path / "kept.db")])
    assert tuned.code == 0, tuned.err
    with load(file) as executable:
        (text,) = {kernel.source.pass_settings for kernel in executable.kernels}
    ctx = PassSettings(text).context()
    assert ctx.disabled_pass == ("StorageRewrite",)
    assert ctx.option(UNROLL_LOOP).auto_max_step == 8


def test_opt_takes_the_options_of_passes() -> None:
    model = ["opt", "zoo:mnist", "--passes", "FuseOps"]
    fused = within([*model, "--pass-config", "FuseOps.max_depth=1"])
    assert fused.code == 0, fused.err
    assert fused.out != within(model).out
    refused = within([*model, "--pass-config", "FuseOps.max_dpth=1"])
    assert refused.code == 2
    assert "unknown key 'FuseOps.max_dpth'" in refused.err
