"""Simulation of a plan's threads on a machine with any number of cores."""
