"""Object code: generation from LLVM IR, the kernel cache, relocation and loading."""
