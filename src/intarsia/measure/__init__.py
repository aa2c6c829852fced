"""Measure candidates: their run time, and whether their results are right."""
