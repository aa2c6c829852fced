"""Whole programs of native kernels on a GPU.

gpu_program      kernels, constants and launches of a source
compile_program  from a source to its program
loaded_program   a program in the memory of a GPU
"""
