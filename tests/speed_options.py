"""The options of toolchains that change speed alone and whose values can be listed: those of TuneFlags."""

from __future__ import annotations

from intarsia.target import TARGET_OPTIONS

SPEED_OPTIONS = tuple(
    option
    for option in map(TARGET_OPTIONS.__getitem__, TARGET_OPTIONS)
    if option.toolchains and option.values and option.keeps_results and option.is_tuned
)
