"""Count the node tests of onnx that each bare engine passes, by the opset of the test.

    python -m benchmarks.opset_evidence [engine ...]

This is the evidence for docs/decisions/0002. The engines get the models as onnx ships them, without Intarsia.
Each engine runs in a process of its own; if the process dies, that test counts as crashed and a new process
continues with the next one.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

ENGINES = ("onnxruntime", "openvino", "reference")
_VERSION_LIMIT = re.compile(
    r"opset version|official released onnx opset|IR version|max supported", re.IGNORECASE
)
_TEST_SECONDS = 120
"""CPU seconds after which a test counts as crashed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("engines", nargs="*", metavar="engine", help=f"default: {', '.join(ENGINES)}")
    parser.add_argument("--worker", nargs=2, metavar=("ENGINE", "FIRST"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        engine, first = options.worker
        run_worker(engine, int(first))
        return
    engines = options.engines or list(ENGINES)
    with ThreadPoolExecutor(2) as pool:
        results = dict(zip(engines, pool.map(run_engine, engines), strict=True))
    for engine, rows in results.items():
        print_table(engine, rows)
    passed = {
        engine: {row["test"] for row in rows if row["what"] == "passed"} for engine, rows in results.items()
    }
    bare = [passed[engine] for engine in ("onnxruntime", "openvino") if engine in passed]
    if len(bare) == 2:
        print(f"passed by both engines {len(bare[0] & bare[1])}, by one of them {len(bare[0] | bare[1])}")
        print(f"passed by one of the engines or the reference {len(set.union(*passed.values()))}")
    print(f"onnxruntime reads opset <= {find_newest('opset')}, IR version <= {find_newest('ir_version')}")


def print_table(engine: str, rows: list[dict[str, Any]]) -> None:
    by_opset = Counter((row["opset"], row["what"]) for row in rows)
    kinds = ("passed", "wrong", "refused", "version", "crashed")
    print(f"{engine}: {len(rows)} tests\n  opset  " + "  ".join(f"{kind:>8}" for kind in kinds))
    for opset in sorted({row["opset"] for row in rows}):
        print(f"  {opset:>5}  " + "  ".join(f"{by_opset[opset, kind]:>8}" for kind in kinds))
    total = Counter(row["what"] for row in rows)
    print("    all  " + "  ".join(f"{total[kind]:>8}" for kind in kinds))
    for row in rows:
        if row["what"] == "crashed":
            print(f"  crashed: {row['test']}")


def run_engine(engine: str) -> list[dict[str, Any]]:
    """Run all tests on one engine; after a crash a new process continues with the next test."""
    rows: list[dict[str, Any]] = []
    names = [test.name for test in node_tests()]
    while len(rows) < len(names):
        command = [sys.executable, __file__, "--worker", engine, str(len(rows))]
        worker = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
        )
        rows += [json.loads(line) for line in worker.stdout.splitlines() if line.startswith('{"test"')]
        if worker.returncode > 0:
            raise RuntimeError(f"the harness failed on {engine} after {len(rows)} tests")
        if len(rows) < len(names):
            rows.append({"test": names[len(rows)], "opset": 0, "what": "crashed"})
    return rows


def run_worker(engine: str, start: int) -> None:
    """Print one line per test, from test number `start` on."""
    import resource

    for test in node_tests()[start:]:
        model = test.model
        opset = {item.domain: item.version for item in model.opset_import}.get("", 0)
        used = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
        resource.setrlimit(resource.RLIMIT_CPU, (used + _TEST_SECONDS, -1))  # a test that hangs is a crash
        what, text = judge(engine, test, model)
        print(json.dumps({"test": test.name, "opset": opset, "what": what, "text": text[:2000]}), flush=True)


def judge(engine: str, test: Any, model: Any) -> tuple[str, str]:
    try:
        run = load_model(engine, model)
    except Exception as error:
        return ("version" if _VERSION_LIMIT.search(str(error)) else "refused"), str(error)
    for inputs, expected in test.data_sets:
        try:
            outputs = run([value_of(item) for item in inputs])
        except Exception as error:
            return "refused", str(error)
        for want, got in zip(map(value_of, expected), outputs, strict=True):
            if not is_close(want, got, test.rtol, test.atol):
                return "wrong", ""
    return "passed", ""


def load_model(engine: str, model: Any) -> Any:
    """Load a model into an engine, and return a function from input values to output values."""
    names = [item.name for item in model.graph.input]
    if engine == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        return lambda values: session.run(None, dict(zip(names, values, strict=True)))
    if engine == "openvino":
        import openvino

        core = openvino.Core()
        options = {"INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}
        model_on_cpu = core.compile_model(core.read_model(model.SerializeToString()), "CPU", options)
        input_names = {name for port in model_on_cpu.inputs for name in port.names}

        def infer(values: list[Any]) -> list[Any]:
            answer = model_on_cpu(
                {name: value for name, value in zip(names, values, strict=True) if name in input_names}
            )
            return [answer[position] for position in range(len(model_on_cpu.outputs))]

        return infer
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    return lambda values: evaluator.run(None, dict(zip(names, values, strict=True)))


def is_close(want: Any, got: Any, rtol: float, atol: float) -> bool:
    if want is None or got is None:
        return want is got
    if isinstance(want, list):
        return len(want) == len(got) and all(
            is_close(*pair, rtol, atol) for pair in zip(want, got, strict=True)
        )
    want, got = np.asarray(want), np.asarray(got)
    if want.shape != got.shape or (want.dtype != got.dtype and want.dtype.kind not in "OUST"):
        return False
    if want.dtype.kind in "OUSTb":
        return bool((want == got).all())
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    return bool(np.allclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=atol, equal_nan=True))


def value_of(item: Any) -> Any:
    """Convert a value of a test to arrays and lists."""
    from onnx import OptionalProto, SequenceProto, TensorProto, numpy_helper

    match item:
        case TensorProto():
            return numpy_helper.to_array(item)
        case SequenceProto():
            return numpy_helper.to_list(item)
        case OptionalProto():
            return numpy_helper.to_optional(item)
        case np.generic():
            return np.asarray(item)
        case _:
            return item


def node_tests() -> list[Any]:
    from onnx.backend.test.loader import load_model_tests

    return sorted(load_model_tests(kind="node"), key=lambda test: str(test.name))


def find_newest(what: str) -> int:
    """Return the newest opset or IR version with which onnxruntime loads a small model."""
    from onnx import helper

    accepted = 0
    for number in range(1, 40):
        value = [helper.make_tensor_value_info(name, 1, [1]) for name in ("x", "y")]
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])
        opset, version = (number, 8) if what == "opset" else (21, number)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=version)
        try:
            load_model("onnxruntime", model)
        except Exception:  # a refusal is a result here: this version is not supported
            continue
        accepted = number
    return accepted


if __name__ == "__main__":
    main()
