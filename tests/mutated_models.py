"""Random mutations of small valid models, which make most of them invalid."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from tests.model_seed import VICTIM, ModelSeed

_INTEGERS: Final = (-(2**63), -(2**31), -99, -7, -1, 0, 1, 2, 3, 7, 99, 2**20, 2**31, 2**40, 2**63 - 1)
_REALS: Final = (float("nan"), float("inf"), -1.0, 0.0, 1.5, 1e30)
_TEXTS: Final = (b"", b"nope", b"NOTSET", b"SAME_UPPER", b"bidirectional", b"ij->", b"\xff\xfe", b"x" * 1000)
_TYPES: Final = tuple(value for value in TensorProto.DataType.values())


def mutated(seed: ModelSeed, random: Random) -> tuple[Any, str]:
    """Return a model with one to three random mutations, and what they are."""
    model = seed.model()
    names = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        mutation = random.choice(_MUTATIONS)
        mutation(model, random)
        names.append(mutation.__name__.strip("_"))
    return model, ", ".join(names)


def _node(model: Any) -> Any:
    return next(node for node in model.graph.node if node.name == VICTIM)


def _change_attribute(model: Any, random: Random) -> None:
    """Another value of the same type."""
    if not _node(model).attribute:
        return _add_attribute(model, random)
    attribute = random.choice(_node(model).attribute)
    match attribute.type:
        case AttributeProto.INT:
            attribute.i = random.choice(_INTEGERS)
        case AttributeProto.FLOAT:
            attribute.f = random.choice(_REALS)
        case AttributeProto.STRING:
            attribute.s = random.choice(_TEXTS)
        case AttributeProto.INTS:
            _change_list(attribute.ints, _INTEGERS, random)
        case AttributeProto.FLOATS:
            _change_list(attribute.floats, _REALS, random)
        case AttributeProto.STRINGS:
            _change_list(attribute.strings, _TEXTS, random)
    return None


def _change_list(items: Any, values: Sequence[Any], random: Random) -> None:
    match random.randrange(4):
        case 0:
            items.append(random.choice(values))
        case 1:
            del items[random.randrange(len(items) + 1) :]
        case 2 if items:
            items[random.randrange(len(items))] = random.choice(values)
        case _:
            items.extend(list(items))


def _retype_attribute(model: Any, random: Random) -> None:
    """A value of another type."""
    if _node(model).attribute:
        attribute = random.choice(_node(model).attribute)
        attribute.CopyFrom(_any_attribute(attribute.name, random))


def _add_attribute(model: Any, random: Random) -> None:
    """An attribute that the operator may not have."""
    name = random.choice(
        ("axis", "axes", "perm", "pads", "group", "kernel_shape", "auto_pad", "to", "dtype", "block_size")
    )
    kept = [item for item in _node(model).attribute if item.name != name]
    del _node(model).attribute[:]
    _node(model).attribute.extend([*kept, _any_attribute(name, random)])


def _any_attribute(name: str, random: Random) -> Any:
    tensor = numpy_helper.from_array(np.array([random.choice(_INTEGERS)]), "value")
    values = (
        random.choice(_INTEGERS),
        random.choice(_REALS),
        random.choice(_TEXTS),
        [random.choice(_INTEGERS) for _ in range(random.randrange(1, 5))],
        [random.choice(_REALS) for _ in range(random.randrange(1, 5))],
        [random.choice(_TEXTS)],
        tensor,
    )
    attribute = helper.make_attribute(name, random.choice(values))
    if random.random() < 0.1:
        attribute.type = random.choice(AttributeProto.AttributeType.values())
    return attribute


def _external_attribute(model: Any, random: Random) -> None:
    """A tensor in an attribute whose elements are said to be in a file."""
    attribute = _node(model).attribute.add(name=random.choice(("value", "axes", "perm")))
    attribute.type = AttributeProto.TENSOR
    _make_external(attribute.t, random)


def _make_external(tensor: Any, random: Random) -> None:
    tensor.data_type = tensor.data_type or TensorProto.FLOAT
    tensor.data_location = TensorProto.EXTERNAL
    entries = {"location": random.choice(("none.bin", "../none.bin", "/dev/zero", "")), "offset": "-1"}
    for key in random.sample(sorted(entries), random.randrange(len(entries) + 1)):
        tensor.external_data.add(key=key, value=entries[key])


def _external_weight(model: Any, random: Random) -> None:
    if model.graph.initializer:
        tensor = random.choice(model.graph.initializer)
        tensor.ClearField("raw_data")
        _make_external(tensor, random)


def _delete_attribute(model: Any, random: Random) -> None:
    attributes = _node(model).attribute
    if attributes:
        del attributes[random.randrange(len(attributes))]


def _drop_argument(model: Any, random: Random) -> None:
    """An argument that is empty, or not there."""
    arguments = _node(model).input
    if arguments:
        position = random.randrange(len(arguments))
        if random.random() < 0.5:
            arguments[position] = ""
        else:
            del arguments[position:]


def _mix_arguments(model: Any, random: Random) -> None:
    """An argument in another's place, twice, or too many."""
    arguments = _node(model).input
    if arguments:
        chosen = random.choice(arguments)
        if random.random() < 0.5:
            arguments[random.randrange(len(arguments))] = chosen
        else:
            arguments.append(chosen)


def _undefined_argument(model: Any, random: Random) -> None:
    arguments = _node(model).input
    if arguments:
        arguments[random.randrange(len(arguments))] = random.choice(("nowhere", "y"))


def _retype_input(model: Any, random: Random) -> None:
    """Another element type."""
    item = random.choice(model.graph.input)
    item.type.tensor_type.elem_type = random.choice(_TYPES)


def _reshape_input(model: Any, random: Random) -> None:
    """Another rank, extent or symbol."""
    dims = random.choice(model.graph.input).type.tensor_type.shape.dim
    match random.randrange(5):
        case 0:
            dims.add(dim_value=random.choice((1, 2, 3)))
        case 1 if dims:
            del dims[random.randrange(len(dims)) :]
        case 2 if dims:
            dims[random.randrange(len(dims))].dim_value = random.choice((0, 1, 2, 5, 2**20, -1))
        case 3 if dims:
            dims[random.randrange(len(dims))].dim_param = "N"
        case _:
            model.graph.input[0].type.tensor_type.ClearField("shape")


def _change_weight(model: Any, random: Random) -> None:
    """Other elements, another shape, or another type of an initializer."""
    if not model.graph.initializer:
        return
    tensor = random.choice(model.graph.initializer)
    try:
        array = np.array(numpy_helper.to_array(tensor))
    except Exception:  # another mutation has been here
        array = np.zeros(1, np.float32)
    match random.randrange(5):
        case 0:
            values = _REALS if array.dtype.kind == "f" else _INTEGERS
            value = np.array(random.choice(values)).astype(array.dtype)
            array.reshape(-1)[random.randrange(max(array.size, 1)) : 1 + random.randrange(4)] = value
        case 1:
            array = array.reshape(-1)[: random.randrange(array.size + 1)]
        case 2:
            array = array[None]
        case 3:
            array = array.astype(random.choice(("f4", "f8", "f2", "i4", "i8", "u1", "?")))
        case _:
            array = np.concatenate([array.reshape(-1)] * 2)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _damage_weight(model: Any, random: Random) -> None:
    """An initializer whose fields contradict each other."""
    if not model.graph.initializer:
        return
    tensor = random.choice(model.graph.initializer)
    match random.randrange(4):
        case 0:
            tensor.data_type = random.choice(_TYPES)
        case 1:
            tensor.raw_data = tensor.raw_data[: random.randrange(len(tensor.raw_data) + 1)]
        case 2:
            tensor.dims.append(random.choice(_INTEGERS))
        case _:
            tensor.ClearField("raw_data")


def _change_outputs(model: Any, random: Random) -> None:
    outputs = _node(model).output
    match random.randrange(4):
        case 0:
            outputs.extend(["second", "third", "fourth", "fifth"][: random.randrange(1, 5)])
        case 1:
            outputs.append("y")
        case 2 if outputs:
            outputs[0] = ""
        case _:
            del outputs[:]


def _declare_output(model: Any, random: Random) -> None:
    """A type that the result may not have."""
    result = model.graph.output[0].type.tensor_type
    result.elem_type = random.choice(_TYPES)
    for _ in range(random.randrange(4)):
        result.shape.dim.add(dim_value=random.choice((0, 1, 2, 3, -1)))


def _change_operator(model: Any, random: Random) -> None:
    _node(model).op_type = random.choice(("Relu", "Conv", "Nope", "", "Loop", "If", "Scan", "Constant"))


def _change_opset(model: Any, random: Random) -> None:
    random.choice(model.opset_import).version = random.choice(
        (-1, 0, 1, 5, 7, 9, 10, 11, 12, 13, 17, 19, 26, 99)
    )


def _attach_body(model: Any, random: Random) -> None:
    """A graph in an attribute."""
    attribute = _node(model).attribute.add(name=random.choice(("body", "then_branch", "else_branch", "axis")))
    attribute.type = AttributeProto.GRAPH
    if random.random() < 0.5:
        attribute.g.CopyFrom(copy.deepcopy(model.graph))


_MUTATIONS: Final[tuple[Callable[[Any, Random], None], ...]] = (
    *(_change_attribute,) * 4,
    *(_change_weight,) * 3,
    *(_reshape_input,) * 3,
    *(_retype_input,) * 2,
    *(_drop_argument,) * 2,
    _retype_attribute,
    _add_attribute,
    _external_attribute,
    _external_weight,
    _delete_attribute,
    _mix_arguments,
    _undefined_argument,
    _damage_weight,
    _change_outputs,
    _declare_output,
    _change_operator,
    _change_opset,
    _attach_body,
)
