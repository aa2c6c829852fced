"""TensorRT as a toolchain, on GPUs only. Written after its documentation (API of version 10): never run yet.

toolchain   the class
engine      from a model to an engine
kernel      an engine in the memory of a GPU, called
"""
