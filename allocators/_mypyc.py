"""What compiled modules import from mypyc, without needing mypyc at run time.

Type checkers and mypyc see the real names; the interpreter sees stand-ins that do nothing. This module is itself
never compiled.
"""
# Not compiled: it stands in for what mypyc provides.

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mypy_extensions import i64 as i64
    from mypy_extensions import mypyc_attr as mypyc_attr
else:
    i64 = int

    def mypyc_attr(**_options):
        return lambda cls: cls
