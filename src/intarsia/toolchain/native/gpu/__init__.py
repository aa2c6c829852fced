"""Whole programs of native kernels on a GPU.

gpu_program      kernels, constants and launches of a source
compile_program  from a source to its program
item_program     the same for any number of items: a batch, or the tokens of texts
compile_items    from a source with such sizes to its program
loaded_program   a program in the memory of a GPU
loaded_items     a program for any number of items there
gpu_kernel       a program as a kernel of the toolchain, on whatever GPU runs it
gpu_profiler     times of its launches
"""
