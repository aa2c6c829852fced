"""Execution of kernels: native functions, threads, and the driver that runs a list of kernels."""
