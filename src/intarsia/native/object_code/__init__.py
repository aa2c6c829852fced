"""Object code: LLVM IR compiled to it, its cache, its relocation and loading."""
