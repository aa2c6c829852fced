"""The terminal: progress, notes, shared flags, interruption by Ctrl-C."""
