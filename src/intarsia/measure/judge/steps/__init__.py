"""Outputs behind steps: operators whose result jumps where their argument moves by a rounding error.

step_rules      finds steps behind outputs, and makes their checks
range_check     Floor, Round, comparisons, conversions to integers: values on either side of a step near by
pick_check      TopK, ArgMax, ArgMin: what the indices select, and what is gathered by them
movement        following a value back through operators that only move it
"""
