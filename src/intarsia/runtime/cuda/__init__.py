"""NVIDIA GPUs through their driver alone: `libcuda`, by ctypes (docs/gpu.md).

driver           functions of the driver, and its errors
cuda_context     memory, modules, launches and times on one GPU
memory_pool      blocks of memory that are used again
"""
