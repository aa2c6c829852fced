"""Measuring: how long a candidate takes, and whether its result is right."""
