"""The machine that kernels are compiled for: instruction set, cache sizes, the LLVM library."""
