"""The recipes, a file for each family. They import heavy packages in functions: .venv imports them too."""
