"""Machines, targets and virtual devices: where a program may run, and where its values live."""

from intarsia.target.compilation_config import CompilationConfig
from intarsia.target.device_type import DeviceType
from intarsia.target.host import Host
from intarsia.target.option import (
    TARGET_OPTIONS,
    OptionValue,
    TargetOption,
    register_option,
    toolchain_options,
)
from intarsia.target.reference import REFERENCE, REFERENCE_TARGET
from intarsia.target.target import Target
from intarsia.target.virtual_device import UNCONSTRAINED, VIRTUAL_DEVICE_REGEX, VirtualDevice

__all__ = [
    "REFERENCE",
    "REFERENCE_TARGET",
    "TARGET_OPTIONS",
    "UNCONSTRAINED",
    "VIRTUAL_DEVICE_REGEX",
    "CompilationConfig",
    "DeviceType",
    "Host",
    "OptionValue",
    "Target",
    "TargetOption",
    "VirtualDevice",
    "register_option",
    "toolchain_options",
]
