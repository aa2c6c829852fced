"""Functions inside programs: captured variables, the call graph, inlining and outlining."""
