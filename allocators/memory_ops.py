"""Tells mypyc of the C functions in `memory.h`: a call of `memory.load_u32` in a compiled module is one of them.

For builds only: `register`, then compile with `HEADER` included. It adds to the registry where mypyc looks up its own
primitives, which is an internal of mypyc; the build requires the one version that it has been tested with.

The signatures are those that type checkers see in `memory.py`.
"""
# Not compiled: it runs before there is anything compiled.

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

#: Every compiled module that uses `allocators.memory` must include it.
HEADER = Path(__file__).with_name("memory.h")

#: The functions that raise.
_RAISING = {"pointer", "load_item", "store_item", "load_bytes", "word", "number"}


def register() -> None:
    """Add the primitives to mypyc, in this process."""
    ops: Any = import_module("mypyc.ir.ops")
    types: Any = import_module("mypyc.ir.rtypes")
    registry: Any = import_module("mypyc.primitives.registry")
    rtypes = {
        "i64": types.int64_rprimitive,
        "Pointer": types.int64_rprimitive,
        "float": types.float_rprimitive,
        "bool": types.bool_rprimitive,
        "bytes": types.bytes_rprimitive,
        "None": types.void_rtype,
        "Any": types.object_rprimitive,
        "memoryview[Any]": types.object_rprimitive,
    }
    for function in _signatures():
        result = rtypes[_text(function.returns)]
        error = ops.ERR_NEVER
        if function.name in _RAISING:
            error = ops.ERR_MAGIC_OVERLAPPING if result is types.int64_rprimitive else ops.ERR_MAGIC
            if result is types.void_rtype:
                result, error = types.bit_rprimitive, ops.ERR_FALSE
        registry.function_op(
            name=f"allocators.memory.{function.name}",
            arg_types=[rtypes[_text(argument.annotation)] for argument in function.args.args],
            return_type=result,
            c_function_name=f"memory_{function.name}",
            error_kind=error,
        )


def _signatures() -> list[ast.FunctionDef]:
    tree = ast.parse(HEADER.with_suffix(".py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return [function for function in node.body if isinstance(function, ast.FunctionDef)]
    raise AssertionError("memory.py has no signatures")


def _text(annotation: ast.expr | None) -> str:
    return ast.unparse(annotation) if annotation is not None else ""
