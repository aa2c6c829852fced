"""The recipes, a file for each family. They import heavy packages inside: .venv lists them too."""
