"""How many of onnx's own node tests each bare engine passes, by the opset that the test is written in.

    python benchmarks/opset_evidence.py [engine ...]

The evidence for docs/decisions/0002. The engines get the models as onnx ships them, without Intarsia between.
Each engine runs in a process of its own; where it dies, that test counts as crashed and the rest go on.
"""

from __future__ import annotations

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


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2], int(sys.argv[3]))
        return
    engines = sys.argv[1:] or list(ENGINES)
    with ThreadPoolExecutor(2) as pool:
        results = dict(zip(engines, pool.map(run_engine, engines), strict=True))
    for engine, found in results.items():
        print_table(engine, found)
    passed = {
        engine: {row["test"] for row in found if row["what"] == "passed"} for engine, found in results.items()
    }
    bare = [passed[engine] for engine in ("onnxruntime", "openvino") if engine in passed]
    if len(bare) == 2:
        print(f"passed by both engines {len(bare[0] & bare[1])}, by one of them {len(bare[0] | bare[1])}")
        print(f"passed by one of the engines or the reference {len(set.union(*passed.values()))}")
    print(f"onnxruntime reads opset <= {newest('opset')}, IR version <= {newest('ir_version')}")


def print_table(engine: str, found: list[dict[str, Any]]) -> None:
    by_opset = Counter((row["opset"], row["what"]) for row in found)
    kinds = ("passed", "wrong", "refused", "version", "crashed")
    print(f"{engine}: {len(found)} tests\n  opset  " + "  ".join(f"{kind:>8}" for kind in kinds))
    for opset in sorted({row["opset"] for row in found}):
        print(f"  {opset:>5}  " + "  ".join(f"{by_opset[opset, kind]:>8}" for kind in kinds))
    total = Counter(row["what"] for row in found)
    print("    all  " + "  ".join(f"{total[kind]:>8}" for kind in kinds))
    for row in found:
        if row["what"] == "crashed":
            print(f"  crashed: {row['test']}")


def run_engine(engine: str) -> list[dict[str, Any]]:
    """All tests on one engine; a new process goes on behind a test that killed the last one."""
    found: list[dict[str, Any]] = []
    names = [test.name for test in node_tests()]
    while len(found) < len(names):
        command = [sys.executable, __file__, "--worker", engine, str(len(found))]
        worker = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
        )
        found += [json.loads(line) for line in worker.stdout.splitlines() if line.startswith('{"test"')]
        if worker.returncode > 0:
            raise RuntimeError(f"the harness failed on {engine} after {len(found)} tests")
        if len(found) < len(names):
            found.append({"test": names[len(found)], "opset": 0, "what": "crashed"})
    return found


def work(engine: str, start: int) -> None:
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
        run = compiled(engine, model)
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


def compiled(engine: str, model: Any) -> Any:
    """A function from input values to output values."""
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
        found = core.compile_model(core.read_model(model.SerializeToString()), "CPU", options)
        kept = {name for port in found.inputs for name in port.names}

        def infer(values: list[Any]) -> list[Any]:
            answer = found({name: value for name, value in zip(names, values, strict=True) if name in kept})
            return [answer[position] for position in range(len(found.outputs))]

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
    """A value of a test, as arrays and lists."""
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


def newest(what: str) -> int:
    """The newest opset or IR version of which onnxruntime loads a small model."""
    from onnx import helper

    accepted = 0
    for number in range(1, 40):
        value = [helper.make_tensor_value_info(name, 1, [1]) for name in ("x", "y")]
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])
        opset, version = (number, 8) if what == "opset" else (21, number)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=version)
        try:
            compiled("onnxruntime", model)
        except Exception:  # that it is refused is what is asked
            continue
        accepted = number
    return accepted


if __name__ == "__main__":
    main()
