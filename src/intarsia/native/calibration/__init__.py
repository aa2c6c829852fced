"""Measurement of the machine model: small kernels, and the values that follow from their times."""

from intarsia.native.calibration.calibrate import Calibration, calibrate
from intarsia.native.calibration.probes import Probe, ProbeKind, machine_probes

__all__ = ["Calibration", "Probe", "ProbeKind", "calibrate", "machine_probes"]
