"""`python -m garden` is the `garden` command."""

from garden.cli.main import command

command()
