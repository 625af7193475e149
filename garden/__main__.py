"""`python -m garden` is the `garden` command."""

import gc

# The compiler makes next to no cycles, and looking for some takes a tenth of a start. A program runs with it.
gc.disable()

from garden.cli.main import command  # noqa: E402

command()
