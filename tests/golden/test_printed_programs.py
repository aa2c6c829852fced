from collections.abc import Callable

import numpy as np
from tests.ir_programs import BOOL, F32, add, assert_same_program, branch, module, ones, relu, var

from intarsia.ir import (
    Attrs,
    Call,
    Constant,
    Function,
    FuncType,
    GlobalVar,
    IRModule,
    Let,
    Op,
    OptionalType,
    SequenceType,
    Span,
    SymbolicDim,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    with_fields,
)
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_expr, print_module
from intarsia.ir.verify import verify
from intarsia.support.errors import VerifyError
from intarsia.target import DeviceType, Target, VirtualDevice

Check = Callable[[str, str], None]
OPENVINO = Target("cpu -toolchain=openvino -threads=2")


def every_kind() -> IRModule:
    """A program with each kind of expression, annotation and attribute value."""
    x, cond, weight = var("x"), var("input:0", BOOL), ones()
    conv = with_fields(
        relu(x),
        args=(x, weight, Tuple(())),
        op=Op("Conv"),
        attrs=Attrs({"pads": (3, 3), "alpha": 1.0, "mode": 'a "b"\n', "raw": b'\x00z"', "none": ()}),
        virtual_device=VirtualDevice.for_target(Target("cpu")),
        span=Span("model.onnx", "Conv_0", "Conv"),
    )
    split = Call(Op("Split"), (conv,), Attrs({"outputs": 2}), checked_type=TupleType((F32, F32)))
    inner, outer = var("x"), var("y")
    compiled = Function(
        (inner,),
        relu(inner),
        Attrs({"Compiler": "openvino", "target": str(OPENVINO)}),
        virtual_device=VirtualDevice.for_target(OPENVINO),
        span=Span("model.onnx", "partition"),
    )
    chosen = branch(cond, Call(compiled, (conv,), checked_type=F32), TupleGetItem(split, 1))
    let = Let(outer, relu(chosen), add(outer, outer), span=Span("model.onnx", "let"))
    scaled = Call(
        Op("Scaler", "ai.onnx.ml"),
        (with_fields(weight, span=Span("model.onnx", "W")), Constant(np.array(7))),
        Attrs({"offset": (0.5, float("inf"), -1e-30), "like": weight, "as": F32}),
    )
    shared = Call(GlobalVar("helper function"), (let,), checked_type=F32)
    main = Function((x, cond), Tuple((shared, scaled, chosen)))
    p = var("p")
    helper = Function((p,), p, virtual_device=VirtualDevice(DeviceType.CPU, 1))
    functions = {
        GlobalVar("main", checked_type=main.checked_type): main,
        GlobalVar("helper function", checked_type=helper.checked_type): helper,
    }
    return IRModule(functions, Attrs({"name": "every kind", "opset": 26}))


def test_a_program_with_every_kind_of_expression(check_golden: Check) -> None:
    printed = print_module(every_kind())
    check_golden("every_kind.txt", printed.text)
    assert [c.shape for c in printed.constants] == [(2, 3), (2, 3)]
    assert_same_program(every_kind(), parse_module(printed.text, printed.constants))


def test_a_program_without_annotations(check_golden: Check) -> None:
    printed = print_module(every_kind(), show_types=False, show_devices=False, show_spans=False)
    check_golden("every_kind_bare.txt", printed.text)


def test_an_expression_with_free_variables(check_golden: Check) -> None:
    x, y = var("x"), var("x")
    let = Let(y, relu(x), add(x, y))
    check_golden("free_variables.txt", print_expr(add(let, let)).text)


def test_every_kind_of_type(check_golden: Check) -> None:
    dim = SymbolicDim
    types: list[Type] = [
        TensorType((1, dim("batch"), dim("?"), dim("a b")), F32.dtype),
        TensorType(None, BOOL.dtype),
        TensorType((), F32.dtype),
        TupleType(()),
        TupleType((F32,)),
        FuncType((F32, None), TupleType((F32, BOOL))),
        FuncType((), None),
        SequenceType(OptionalType(F32)),
    ]
    params = [Var(f"p{number}", checked_type=own_type) for number, own_type in enumerate(types)]
    mod = IRModule.from_expr(Function((*params, Var("unknown")), params[0]))
    printed = print_module(mod)
    check_golden("every_type.txt", printed.text)
    assert_same_program(mod, parse_module(printed.text))


def test_complaints_in_place(check_golden: Check) -> None:
    text = """
        def @main(%x: Tensor[(2, 3), float32], %c: Tensor[(2, 3), float32]) {
          %0 = Relu(%x): Tensor[(2, 3), float32];
          %1 = fn (%y: Tensor[(3,), float32]) -> Tensor[(3,), float32]
              attributes {Compiler="openvino", target="cpu -toolchain=openvino"} { Add(%y, %0) };
          %2 = if (%c) { %1(%0): Tensor[(3,), float32] @device(cuda) } else { %0.1 }: Tensor[(3,), float32];
          %3 = Unknown(%2);
          (%3, @main(%x))
        }"""
    try:
        verify(parse_module(text), lambda call: "no such operator" if str(call.op) == "Unknown" else None)
    except VerifyError as error:
        check_golden("complaints.txt", str(error) + "\n")
    else:
        raise AssertionError("no complaint")


def test_variables_of_one_name(check_golden: Check) -> None:
    outer, inner, sibling, digits = var("x"), var("x"), var("x"), var("0")
    first = Function((inner,), add(inner, outer))
    second = Function((sibling, digits), add(sibling, digits))
    body = add(Call(first, (outer,), checked_type=F32), Call(second, (outer, outer), checked_type=F32))
    check_golden("names.txt", print_module(module(outer, body=body)).text)
