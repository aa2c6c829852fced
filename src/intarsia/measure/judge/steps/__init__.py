"""Outputs behind steps: operators whose result jumps where their argument moves by a rounding error.

arguments       what steps are computed from, and its noise
range_rule, range_check
                Floor, Round, comparisons, Equal, conversions to integers, logic: values on both sides
bounds          the smallest and the largest right value of such results
pick_rule, pick_check
                TopK, ArgMax, ArgMin: what the indices select, and what is gathered by them
selection_rule, selection_check
                NonZero: which elements are selected, and what is gathered there
suppression_rule, suppression_check
                NonMaxSuppression: which boxes are selected, and what is gathered for them
row_axis        results with a row for each selected box
inner_steps     steps within a program: runs in which undecided elements fall on the other side
movement        following a value back through operators that only move it
"""
