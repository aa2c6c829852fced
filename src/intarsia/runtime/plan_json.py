"""Convert plans to and from JSON; step lists are flat and numbered, so that nesting has no limit.

Fields of devices are written only for plans with devices, which need format version 2.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from intarsia.ir.cache import Cache, CacheState
from intarsia.ir.dim_range import DimRange
from intarsia.runtime.json_record import Record, as_count, as_list, as_shape, as_text, unexpected
from intarsia.runtime.plan import (
    Copy,
    ExecutionPlan,
    Invoke,
    PlanBlock,
    PlanVariant,
    Repeat,
    RunKernel,
    Structure,
    TensorInfo,
)
from intarsia.runtime.step_lists import FlatBranch, FlatStep, flattened, nested
from intarsia.runtime.stream_choice import StreamChoice
from intarsia.support.errors import ArtifactError

_MOST_DEPTH: Final = 100
"""Maximum nesting of the output structure: readers recurse into it."""


def plan_to_json(plan: ExecutionPlan) -> dict[str, object]:
    """Convert a plan to plain values."""
    devices = {"devices": plan.devices} if plan.devices else {}
    ranges = {name: [item.low, item.high] for name, item in plan.dim_ranges.items()}
    return (
        devices
        | ({"dim_ranges": ranges} if ranges else {})
        | ({"variants": [_variant_to_json(item) for item in plan.variants]} if plan.variants else {})
        | ({"cache": _cache_to_json(plan.cache)} if plan.cache else {})
        | ({"streams": asdict(plan.streams)} if plan.streams else {})
        | {
            "inputs": [info_to_json(info) for info in plan.inputs],
            "outputs": [info_to_json(info) for info in plan.outputs],
            "output_structure": plan.output_structure,
            "slot_types": _slot_types_to_json(plan.slot_types),
            "blocks": {name: _block_to_json(block) for name, block in plan.blocks.items()},
        }
    )


def plan_from_json(record: Record) -> ExecutionPlan:
    """Read a plan from a record of `plan_to_json`.

    Raises:
        ArtifactError: It is not such a record.
    """
    blocks = record.record("blocks")
    devices = record.texts("devices") if "devices" in record.keys() else ()  # noqa: SIM118  # not a mapping
    return ExecutionPlan(
        {name: _block_from_json(blocks.record(name)) for name in blocks.keys()},  # noqa: SIM118  # not a mapping
        record.read_list("inputs", info_from_json),
        record.read_list("outputs", info_from_json),
        _structure(record.get("output_structure"), record.path_to("output_structure")),
        _slot_types_from_json(record),
        devices,
        _dim_ranges(record.record("dim_ranges")) if "dim_ranges" in record.keys() else {},  # noqa: SIM118  # as above
        record.read_list("variants", _variant_from_json) if "variants" in record.keys() else (),  # noqa: SIM118  # as above
        _cache_from_json(record.record("cache")) if "cache" in record.keys() else None,  # noqa: SIM118  # as above
        _streams_from_json(record.record("streams")) if "streams" in record.keys() else None,  # noqa: SIM118  # as above
    )


def _slot_types_to_json(types: tuple[TensorInfo | None, ...]) -> list[object]:
    return [None if info is None else info_to_json(info) for info in types]


def _slot_types_from_json(record: Record) -> tuple[TensorInfo | None, ...]:
    return record.read_list(
        "slot_types", lambda item, where: None if item is None else info_from_json(item, where)
    )


def _variant_to_json(variant: PlanVariant) -> dict[str, object]:
    return {
        "sizes": dict(variant.sizes),
        "block": variant.block,
        "slot_types": _slot_types_to_json(variant.slot_types),
    }


def _variant_from_json(value: object, where: str) -> PlanVariant:
    record = Record(value, where)
    sizes = record.record("sizes")
    return PlanVariant(
        {name: sizes.count(name) for name in sizes.keys()},  # noqa: SIM118  # not a mapping
        record.text("block"),
        _slot_types_from_json(record),
    )


def _dim_ranges(record: Record) -> dict[str, DimRange]:
    ranges: dict[str, DimRange] = {}
    for name in record.keys():  # noqa: SIM118  # not a mapping
        low, high = _pair(record.get(name), record.path_to(name))
        if low > high:
            raise unexpected(record.path_to(name), [low, high], "a range that is not empty")
        ranges[name] = DimRange(low, high)
    return ranges


def _streams_from_json(record: Record) -> StreamChoice:
    choice = StreamChoice(record.count("streams"), record.count("threads"), record.count("batch"))
    if not choice.is_possible:
        raise unexpected(record.path_to("streams"), choice.streams, "numbers from 1 to what a machine has")
    return choice


def _cache_to_json(cache: Cache) -> dict[str, object]:
    return {
        "states": [[item.input, item.output, item.axis] for item in cache.states],
        "capacities": cache.capacities,
        "chunks": cache.chunks,
        "token_inputs": cache.token_inputs,
        "token_outputs": cache.token_outputs,
        "mask": cache.mask,
        "positions": cache.positions,
        "length": cache.length,
    }


def _cache_from_json(record: Record) -> Cache:
    return Cache(
        record.read_list("states", _cache_state),
        record.counts("capacities"),
        record.counts("chunks"),
        record.read_list("token_inputs", _named_axis),
        record.read_list("token_outputs", _named_axis),
        record.text("mask"),
        record.text("positions"),
        record.text("length"),
    )


def _cache_state(value: object, where: str) -> CacheState:
    items = as_list(value, where)
    if len(items) != 3:
        raise unexpected(where, value, "an input, an output and an axis")
    return CacheState(as_text(items[0], where), as_text(items[1], where), as_count(items[2], where))


def _named_axis(value: object, where: str) -> tuple[str, int]:
    items = as_list(value, where)
    if len(items) != 2:
        raise unexpected(where, value, "a name and an axis")
    return as_text(items[0], where), as_count(items[1], where)


def info_to_json(info: TensorInfo) -> dict[str, object]:
    """Convert a name and type to plain values."""
    return {"name": info.name, "dtype": info.dtype, "shape": info.shape}


def info_from_json(value: object, where: str) -> TensorInfo:
    """Read a name and type from the values of `info_to_json`.

    Raises:
        ArtifactError: It is not such a value.
    """
    record = Record(value, where)
    shape = None if record.get("shape") is None else record.read_list("shape", _dim)
    as_shape([dim for dim in shape or () if isinstance(dim, int) and dim > 0], record.path_to("shape"))
    return TensorInfo(record.text("name"), record.text("dtype"), shape)


def _dim(value: object, where: str) -> int | str:
    if isinstance(value, str):
        return value
    return -1 if value == -1 else as_count(value, where)


def _structure(value: object, where: str, depth: int = 0) -> Structure:
    if isinstance(value, int):
        return as_count(value, where)
    if depth > _MOST_DEPTH:
        raise ArtifactError("the output structure is nested too deeply")
    items = enumerate(as_list(value, where))
    return tuple(_structure(item, f"{where}[{index}]", depth + 1) for index, item in items)


def _block_to_json(block: PlanBlock) -> dict[str, object]:
    devices = {"slot_devices": block.slot_devices} if block.slot_devices else {}
    return devices | {
        "params": block.params,
        "constants": block.constants,
        "step_lists": [[_step_to_json(step) for step in steps] for steps in flattened(block.steps)],
        "results": block.results,
        "slots": block.slots,
    }


def _block_from_json(record: Record) -> PlanBlock:
    lists = record.read_list("step_lists", _steps_from_json)
    try:
        steps = nested(lists)
    except ValueError as error:
        raise ArtifactError(f"{record.path_to('step_lists')}: {error}") from error
    constants = record.read_list("constants", _pair)
    params, results, slots = record.counts("params"), record.counts("results"), record.count("slots")
    devices = record.counts("slot_devices") if "slot_devices" in record.keys() else ()  # noqa: SIM118  # as above
    return PlanBlock(params, constants, steps, results, slots, devices)


def _pair(value: object, where: str) -> tuple[int, int]:
    items = [as_count(item, where) for item in as_list(value, where)]
    if len(items) != 2:
        raise unexpected(where, value, "two numbers")
    return items[0], items[1]


def _step_to_json(step: FlatStep) -> dict[str, object]:
    match step:
        case RunKernel():
            device = {"device": step.device} if step.device else {}
            return {"run": step.kernel, "inputs": step.inputs, "outputs": step.outputs} | device
        case Copy():
            return {"copy": step.source, "to": step.destination, "device": step.device}
        case Invoke():
            return {"invoke": step.block, "inputs": step.inputs, "outputs": step.outputs}
        case Repeat():
            return {
                "repeat": step.block,
                "trips": step.trips,
                "condition": step.condition,
                "states": step.states,
                "scanned": step.scanned,
                "captured": step.captured,
                "scan_axes": step.scan_axes,
                "row_axes": step.row_axes,
                "empty": step.empty,
                "outputs": step.outputs,
            }
        case FlatBranch():
            return {
                "branch": step.cond,
                "true": {"list": step.true_list, "results": step.true_results},
                "false": {"list": step.false_list, "results": step.false_results},
                "outputs": step.outputs,
            }


def _steps_from_json(value: object, where: str) -> tuple[FlatStep, ...]:
    items = as_list(value, where)
    return tuple(_step_from_json(Record(item, f"{where}[{index}]")) for index, item in enumerate(items))


def _step_from_json(record: Record) -> FlatStep:
    names = record.keys()
    if "copy" in names:
        return Copy(record.count("copy"), record.count("to"), record.count("device"))
    outputs = record.counts("outputs")
    if "run" in names:
        device = record.count("device") if "device" in names else 0
        return RunKernel(record.count("run"), record.counts("inputs"), outputs, device)
    if "invoke" in names:
        return Invoke(
            as_text(record.get("invoke"), record.path_to("invoke")), record.counts("inputs"), outputs
        )
    if "repeat" in names:
        return _repeat_from_json(record)
    true, false = record.record("true"), record.record("false")
    return FlatBranch(
        record.count("branch"),
        true.count("list"),
        true.counts("results"),
        false.count("list"),
        false.counts("results"),
        outputs,
    )


def _repeat_from_json(record: Record) -> Repeat:
    return Repeat(
        as_text(record.get("repeat"), record.path_to("repeat")),
        trips=record.counts("trips"),
        condition=record.counts("condition"),
        states=record.counts("states"),
        scanned=record.counts("scanned"),
        captured=record.counts("captured"),
        scan_axes=record.read_list("scan_axes", _axis),
        row_axes=record.read_list("row_axes", _axis),
        empty=record.counts("empty"),
        outputs=record.counts("outputs"),
    )


def _axis(value: object, where: str) -> tuple[int, bool]:
    items = as_list(value, where)
    if len(items) != 2 or not isinstance(items[1], bool):
        raise unexpected(where, value, "an axis, and whether it is gone through backward")
    return as_count(items[0], where), items[1]
