"""Kernels executed: native functions, threads, the driver that runs a row of kernels."""
