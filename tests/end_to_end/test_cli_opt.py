"""`intarsia opt`: passes watched, programs written and read back, failures reproduced and reduced."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnx
import pytest
from tests.end_to_end.command_line import Outcome, within
from tests.planted_bugs import PLANTED, long_program

from intarsia.driver.program_file import write_program
from intarsia.passes import InferType
from intarsia.transform.pass_registry import holding_pass


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A program in a file of the current folder, without constants beside it."""
    monkeypatch.chdir(tmp_path)
    Path("small.txt").write_text(
        "def @main(%x: Tensor[(2, 3), float32]) {\n"
        "  %0 = Add(%x, Mul(float32(2.0), float32(3.0)));\n"
        "  Relu(Reshape(%0, int64[3, 2]))\n"
        "}\n"
    )
    return "small.txt"


def opt(*words: str) -> Outcome:
    return within(["opt", *words])


class TestPrinting:
    def test_before_and_after_named_passes(self, model: str) -> None:
        words = ["--print-ir-before", "FoldConstant", "--print-ir-after", "FoldConstant"]
        outcome = opt(model, "--pipeline", "FoldConstant", *words)
        assert (outcome.code, outcome.err) == (0, "")
        before, after = outcome.out.split("# after FoldConstant")
        assert before.startswith("# before FoldConstant\n")
        assert "Mul(float32(2.0), float32(3.0))" in before
        assert "Add(%x, float32(6.0))" in after

    def test_every_pass_and_passes_that_changed_something(self, model: str) -> None:
        passes = ["--pipeline", "FoldConstant, FoldConstant"]
        everything = opt(model, *passes, "--print-ir-after-all").out
        assert everything.count("# after FoldConstant") == 2
        assert everything.count("# after InferType") == 2
        assert opt(model, *passes, "--print-ir-before-all").out.count("# before ") == 5
        changed = opt(model, *passes, "--print-ir-after-changed").out
        assert [line for line in changed.splitlines() if line.startswith("# ")] == [
            "# after FoldConstant",
        ]

    def test_documents_hold_what_is_printed(self, model: str) -> None:
        words = ["--print-ir-after", "FoldConstant", "--stats", "--timing", "--memory"]
        document = opt(model, "--pipeline", "FoldConstant", *words, "--json").document
        assert document["passes"] == ["FoldConstant"]
        assert document["printed"][0].startswith("# after FoldConstant\n")
        (folding,) = (run for run in document["stats"] if run["name"] == "FoldConstant")
        assert (folding["operators"], folding["removed"], folding["changed"]) == ([4, 3], {"Mul": 1}, True)
        assert document["timing"][0]["name"] == "opt"
        assert {run["name"] for run in document["memory"]} == {"InferType", "FoldConstant", "opt"}


class TestRunning:
    def test_statistics_times_and_memory(self, model: str) -> None:
        outcome = opt(model, "--pipeline", "FoldConstant", "--stats", "--timing", "--memory")
        assert outcome.code == 0
        rows = [line.split() for line in outcome.out.splitlines()]
        assert ["FoldConstant", "changed", "4", "->", "3", "24", "->", "20", "-Mul"] in rows
        assert ["pass", "retained", "peak"] in rows
        assert ["pass", "total", "self", "of", "all", "of", "outer"] in rows

    def test_passes_after_the_last_do_not_run(self, model: str) -> None:
        stopped = opt(model, "--pipeline", "InferType, FoldConstant", "--stop-after", "InferType")
        assert stopped.out == opt(model, "--pipeline", "InferType").out
        missing = opt(model, "--pipeline", "FoldConstant", "--stop-after", "FuseOps")
        assert missing.code == 2
        assert missing.err.startswith("error: the pass of --stop-after has not run\n")
        unknown = opt(model, "--stop-after", "Fuse")
        assert unknown.err.startswith("error: --stop-after 'Fuse' is no pass\n")

    def test_options_and_disabled_passes(self, model: str) -> None:
        fused = opt(model, "--pipeline", "FuseOps", "--config", "FuseOps.max_depth=1")
        assert fused.code == 0
        assert fused.out != opt(model, "--pipeline", "FuseOps").out
        kept = opt(model, "--pipeline", "FoldConstant", "--disable", "FoldConstant")
        assert "Mul(" in kept.out

    def test_the_pipeline_of_the_documentation(self, model: str) -> None:
        text = "FuseOps{max_depth=8},ConvertLayout{layout=NHWC},default_heuristic"
        outcome = opt(model, "--pipeline", text, "--verify-each", "--check")
        assert (outcome.code, outcome.err) == (0, "")

    def test_a_broken_program_is_refused_after_the_pass(self, model: str) -> None:
        _, item = PLANTED["wrong type"]
        with holding_pass("Mistype", item):
            write_program(long_program(), Path("long.txt"))
            outcome = opt("long.txt", "--pipeline", "InferType, Mistype", "--verify-each")
        assert outcome.code == 3
        assert "broken by pass Mistype" in outcome.err

    def test_a_pass_with_a_bug_is_named(self, model: str) -> None:
        _, item = PLANTED["raising"]
        with holding_pass("Raise", item):
            write_program(long_program(), Path("long.txt"))
            outcome = opt("long.txt", "--pipeline", "InferType, Raise", "--print-ir-after", "InferType")
        assert outcome.code == 4
        assert outcome.out.startswith("# after InferType\n")
        assert outcome.err == (
            "error: Raise raised KeyError: 'axis' (module tests.planted_bugs)\n"
            "  --reproducer FOLDER writes what reproduces it\n"
            "help: report it to the author of the pass; --debug shows the traceback\n"
        )


class TestOutput:
    def test_text_with_constants_beside_it_reads_back(self, model: str) -> None:
        outcome = opt("zoo:mnist", "-o", "mnist.txt")
        assert outcome.out == "wrote mnist.txt, mnist.constants.safetensors, mnist.constants.json\n"
        again = opt("mnist.txt", "--pipeline", "InferType")
        assert again.out == f"{Path('mnist.txt').read_text()}\n"
        assert within(["compare", "mnist.txt@reference", "zoo:mnist@reference"]).code == 0

    def test_models_of_onnx_and_graphs(self, model: str) -> None:
        outcome = opt(model, "-o", "out.onnx", "-o", "out.dot")
        assert outcome.out == "wrote out.onnx, out.dot\n"
        operators = [node.op_type for node in onnx.load("out.onnx").graph.node]
        assert operators == ["Add", "Reshape", "Relu"]
        lines = Path("out.dot").read_text().splitlines()
        assert lines[0] == "digraph program {"
        assert sum("->" in line for line in lines) == 4

    def test_a_drawing_needs_graphviz(self, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "")
        outcome = opt(model, "-o", "out.svg")
        assert outcome.code == 2
        assert outcome.err.endswith("help: install Graphviz, or write out.dot\n")

    @pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
    def test_a_drawing(self, model: str) -> None:
        assert opt(model, "-o", "out.svg").code == 0
        assert "<svg" in Path("out.svg").read_text()

    def test_unknown_formats_and_the_input_itself(self, model: str) -> None:
        unknown = opt(model, "-o", "out.png")
        assert unknown.err.startswith("error: cannot write out.png: unknown suffix '.png'\n")
        assert opt(model, "-o", model).err.startswith("error: cannot write small.txt: it is the input file\n")


class TestReproducer:
    def test_a_failure_is_written_replayed_and_reduced(self, model: str) -> None:
        _, item = PLANTED["raising"]
        write_program(long_program(), Path("long.txt"))
        with holding_pass("Raise", item):
            outcome = opt("long.txt", "--pipeline", "FoldConstant, Raise", "--reproducer", "bug")
            assert outcome.code == 4
            assert outcome.err == (
                "error: Raise: raised: KeyError: 'axis'\n"
                "  wrote bug: program, constants, pipeline and versions\n"
                "help: intarsia opt --reduce bug\n"
            )
            facts = json.loads(Path("bug/reproducer.json").read_text())
            assert facts["pipeline"] == "Raise"
            assert facts["versions"]["pass"].startswith("module tests.planted_bugs")
            reduced = opt("--reduce", "bug", "--quiet")
            assert reduced.code == 0
            document = opt("--reduce", "bug", "--json").document
        assert "Softmax(" in reduced.out
        assert document["operators"][1] == 1
        assert Path("bug/reduced.txt").read_text() == document["program"]

    def test_what_no_longer_fails(self, model: str) -> None:
        write_program(long_program(), Path("long.txt"))
        with holding_pass("Raise", PLANTED["raising"][1]):
            opt("long.txt", "--pipeline", "Raise", "--reproducer", "bug")
        with holding_pass("Raise", InferType()):
            outcome = opt("--reduce", "bug")
        assert outcome == Outcome(0, "no longer fails: Raise: raised: KeyError: 'axis'\n", "")

    def test_what_is_no_folder_of_a_reproducer(self, model: str) -> None:
        outcome = opt("--reduce", "nowhere")
        assert outcome.code == 2
        assert outcome.err.startswith("error: nowhere is no folder of a reproducer: ")
        assert opt(model, "--reduce", "nowhere").err.startswith("error: --reduce takes no MODEL\n")
        assert opt().err.startswith("error: missing argument 'MODEL'\n")


class TestRemarks:
    def test_what_passes_say(self, model: str) -> None:
        words = [model, "--pipeline", "FuseOps{max_depth=1}", "--remarks"]
        outcome = opt(*words, "FuseOps: missed")
        assert outcome.code == 0
        first, note = outcome.out.splitlines()[:2]
        assert first.startswith("missed: FuseOps: Add %1 is not fused with what follows: ")
        assert note == "  note: Reshape %2 uses its result"
        assert opt(*words, "ConvertLayout").out.startswith("no remarks\n")
        document = opt(*words, ".", "--json").document
        assert {record["pass"] for record in document["remarks"]} == {"FuseOps"}

    def test_a_pattern_that_is_none(self, model: str) -> None:
        assert opt(model, "--remarks", "(").err.startswith("error: '(' is no regular expression: ")
