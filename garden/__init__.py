"""garden: a compiler and virtual machine whose every stage takes its memory from an allocator.

`Engine` embeds garden in Python programs; `Compilation` runs single stages. Names are loaded when they are first used,
so that importing one module of the package does not import them all.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from garden.bindings import Package as Package
    from garden.diagnostics import Diagnostic as Diagnostic
    from garden.engine import Engine as Engine
    from garden.engine import Function as Function
    from garden.engine import Program as Program
    from garden.engine import compile as compile
    from garden.errors import CompileError as CompileError
    from garden.errors import GardenError as GardenError
    from garden.errors import Trap as Trap
    from garden.pipeline import Compilation as Compilation
    from garden.pipeline import StageAllocators as StageAllocators
    from garden.source import Source as Source
    from garden.std import STANDARD as STANDARD
else:
    _HOMES = {
        "Package": "bindings",
        "Diagnostic": "diagnostics",
        "Engine": "engine",
        "Function": "engine",
        "Program": "engine",
        "compile": "engine",
        "CompileError": "errors",
        "GardenError": "errors",
        "Trap": "errors",
        "Compilation": "pipeline",
        "StageAllocators": "pipeline",
        "Source": "source",
        "STANDARD": "std",
    }

    def __getattr__(name):
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'garden' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"garden.{home}"), name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *_HOMES} - {"TYPE_CHECKING"})
