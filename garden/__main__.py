"""`python -m garden` is the `garden` command."""

import sys

from garden.cli.main import command

sys.exit(command())
