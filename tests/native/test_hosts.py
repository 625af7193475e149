"""Every standard function has a native form that fits it, but for what looks at the operating system."""

from __future__ import annotations

from allocators import PageAlloc
from garden.host import HostFunction, declare
from garden.native.codegen.hosts import native_call
from garden.native.codegen.runtime import runtime_ir
from garden.std import STANDARD
from garden.types.types import BOOL, DOUBLE, Array, Bool, Double, Int, Option, Record, Slot, Str, Type

_FUNCTIONS = [function for package in STANDARD.values() for function in package.functions]
#: Types of the runtime that are not words.
_TYPES = {Double: DOUBLE, Bool: BOOL}


def _filled(function: HostFunction, slot: Type) -> HostFunction:
    def fill(type: Type) -> Type:
        if type.name == "Slot":
            return slot
        if type.name in ("Array", "Option"):
            return {"Array": Array, "Option": Option}[type.name](fill(type.members[0]))
        return type

    return function.with_types([fill(type) for _, type in function.parameters], fill(function.result))


def test_all_but_uname_have_a_native_form() -> None:
    assert [function.path for function in _FUNCTIONS if not function.native] == ["unsafe/syscall.uname"]


def test_every_native_form_is_in_the_runtime_with_as_many_parameters() -> None:
    point = Record(x=Int, y=Int)
    with runtime_ir(PageAlloc()) as ir:
        symbols = ir.checked.ast.symbols
        rows = {symbols.lookup(ir.function_name[row]).decode(): row for row in range(1, ir.function_count - 1)}
        for generic in _FUNCTIONS:
            for slot in (Int, Double, Bool, Str, point, Option(Int)):
                function = _filled(generic, slot)
                call = native_call(function)
                if call is None:
                    assert not function.native
                    continue
                name, constants = call
                row = rows[name]
                parameters = [ir.type[value] for value in ir.list_at(ir.block_params[ir.function_first[row]])]
                assert len(parameters) == len(function.parameters) + len(constants), name
                if not generic.generic:
                    wanted = [_TYPES.get(type) for _, type in function.parameters]
                    found = [type if type in (BOOL, DOUBLE) else None for type in parameters]
                    assert found == wanted, name
                    result = ir.function_result[row]
                    assert (result if result in (BOOL, DOUBLE) else None) == _TYPES.get(function.result), name


def test_records_are_their_addresses_in_arrays_and_options() -> None:
    by_name = {function.native: function for function in _FUNCTIONS}
    point = Record(x=Int, y=Record(z=Int, w=Int))
    calls = {
        name: (native_call(_filled(by_name[name], point)), native_call(_filled(by_name[name], Double)))
        for name in ("arr_get", "arr_len", "opt_some", "opt_unwrap", "opt_or", "opt_is_some")
    }
    assert calls == {
        "arr_get": (("arr_get_record", (24,)), ("arr_get", ())),
        "arr_len": (("arr_len", ()), ("arr_len", ())),
        "opt_some": (("opt_some_record", ()), ("opt_some", ())),
        "opt_unwrap": (("opt_unwrap_record", ()), ("opt_unwrap", ())),
        "opt_or": (("opt_or_record", ()), ("opt_or", ())),
        "opt_is_some": (("opt_is_some", ()), ("opt_is_some", ())),
    }


def test_functions_of_other_packages_have_none() -> None:
    @declare("mine", "twice", ("x", Slot("T")), result=Int)
    def twice(x: object) -> int:
        """Never called."""
        return 2

    assert twice.native == ""
    assert native_call(twice) is None
