"""Arguments and options of commands: their types, their checks, their completion."""
