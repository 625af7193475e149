"""Compiles the hot modules with mypyc where a C compiler is present, and makes the `garden` command.

`GARDEN_PURE=1` leaves them in Python. So does an editable install, whose modules must follow the source. The command
is the launcher, in machine code, where the modules are compiled and there is machine code for this system; else it is
a function of Python. Everything else is in pyproject.toml.
"""

import ast
import hashlib
import importlib.util
import os
import re
import shutil
import string
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

# Before distutils, which is that of setuptools.
from setuptools import Extension, setup  # isort: skip
from distutils.command.build_scripts import build_scripts

from setuptools.command.build_py import build_py

# One extension module a group, compiled side by side.
GROUPS = {
    "allocators": ("allocators",),
    "garden_front": ("garden", "garden/syntax", "garden/types"),
    "garden_ir": ("garden/ir",),
    "garden_back": ("garden/bytecode", "garden/vm"),
}

#: How a module says that it stays in Python, and why; in an `__init__.py`, for all modules of the folder.
MARK = "\n# Not compiled: "
#: They re-export, or must run as a script: nothing to gain.
UNCOMPILED_NAMES = {"__init__.py", "__main__.py"}


def modules(folders: tuple[str, ...]) -> list[str]:
    """The modules to compile in some folders and the folders below that are no group's own, in a fixed order."""
    own = {folder for group in GROUPS.values() for folder in group}
    found = []
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.py")):
            parents = {parent.as_posix() for parent in path.parents}
            nearest = max(own & parents, key=len)
            if nearest == folder and path.name not in UNCOMPILED_NAMES and not is_marked(path):
                found.append(path.as_posix())
    return found


def is_marked(path: Path) -> bool:
    """Whether a module says that it stays in Python, or a package that it is in."""
    packages = [parent / "__init__.py" for parent in path.parents]
    return any(MARK in place.read_text(encoding="utf-8") for place in (path, *packages) if place.exists())


def has_compiler() -> bool:
    """Whether there is a C compiler to build extensions with."""
    if sys.platform == "win32":
        return True
    command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    return shutil.which(command.split()[0]) is not None


def add_docstrings(sources: set[str], paths: list[str]) -> None:
    """Put the docstrings of modules into the C that mypyc has made of them.

    It keeps signatures, unless a default is no literal, and nothing else.
    """
    docs: dict[str, str | None] = {}
    signatures = {}
    for path in paths:
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
        name = path.removesuffix(".py").replace("/", ".")
        docs[f'"{name}"'] = ast.get_docstring(tree)
        mangled = name.replace(".", "___")
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                docs[f"CPyType_{mangled}___{node.name}_template_"] = ast.get_docstring(node)
                for method in node.body:
                    if isinstance(method, ast.FunctionDef):
                        what = f"CPyPy_{mangled}___{node.name}___{method.name}"
                        docs[what] = ast.get_docstring(method)
                        signatures[what] = signature(method)
                        docs.setdefault(f"{mangled}___{node.name}_get_{method.name}", ast.get_docstring(method))
            elif isinstance(node, ast.FunctionDef):
                what = f"CPyPy_{mangled}___{node.name}"
                docs[what] = ast.get_docstring(node)
                signatures[what] = signature(node)

    def documented(match: re.Match[str]) -> str:
        what = match["what"]
        doc = docs.get(what) or ""
        head = match["signature"] or in_c(signatures.get(what, ""))
        return f'{match["head"]}"{head}{in_c(doc)}"' if head or doc else match[0]

    for source in sources:
        text = Path(source).read_text(encoding="utf-8")
        for place in DOCSTRING_PLACES:
            text = place.sub(documented, text)
        Path(source).write_text(text, encoding="utf-8")


def in_c(text: str) -> str:
    """A text as it stands between the quotes of a C string."""
    plain = string.ascii_letters + string.digits + " .,:()`"
    return "".join(chr(byte) if chr(byte) in plain else f"\\{byte:03o}" for byte in text.encode())


def signature(function: ast.FunctionDef) -> str:
    """The signature as C has it in front of a docstring; `...` for a default that is no literal."""
    arguments = function.args
    for defaults in (arguments.defaults, arguments.kw_defaults):
        defaults[:] = [ast.Constant(...) if not isinstance(value, ast.Constant | None) else value for value in defaults]
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    text = ast.unparse(arguments)
    return f"{function.name}({'$' if text.startswith('self') else ''}{text})\n--\n\n"


#: Where in C the docstring of a class, a function, a property and a module stands; it may have a signature already.
DOCSTRING_PLACES = [
    re.compile(rf'(?P<head>{head})(?:NULL|"(?P<signature>(?:[^"\\]|\\.)*)")')
    for head in (
        r"(?P<what>CPyType_\w+_template_) = \{[^}]*?\.tp_doc = PyDoc_STR\(",
        r"\(PyCFunction\)(?P<what>CPyPy_\w+),[^}]*?PyDoc_STR\(",
        r"\(getter\)(?P<what>\w+),\s*(?:NULL|\(setter\)\w+),\s*",
        r'(?P<what>"[\w.]+"),\s*(?=NULL, /\* docstring)',
    )
]


def as_c(paths: list[str], groups: list[tuple[list[str], str]]) -> Any:
    """The C that mypyc makes of modules, as `mypycify` accepts it.

    It is made with knowledge of all classes, which `mypycify` does not use when there are groups: methods that no class
    overrides are called directly, and attributes that `__init__` always sets are read without looking whether they are
    there. That is right since the classes of a group are seen together, and no class inherits from one of another group
    (`check_inheritance`) but those which interpreted classes may inherit from too.
    """
    from mypyc.build import CompilerOptions, FileSystemCache, construct_groups, generate_c, get_mypy_config

    options = CompilerOptions(separate=True)
    options.global_opts = True
    # A cache of its own: mypyc trips over what an earlier build of other sources has left.
    cache = tempfile.mkdtemp(prefix="garden-mypyc-")
    try:
        files = FileSystemCache()
        to_compile, sources, settings = get_mypy_config([f"--cache-dir={cache}", *paths], None, options, files)
        c_groups = construct_groups(to_compile, groups, True, None)
        texts, _, needs = generate_c(sources, settings, c_groups, files, compiler_options=options)
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    return texts, [(need.path, need.include_dirs, need.internal) for need in needs]


def check_inheritance(groups: list[tuple[list[str], str]]) -> None:
    """Stop if a class inherits from a class of another group that is closed to interpreted classes."""
    home: dict[str, str] = {}
    bases: list[tuple[str, str, str]] = []
    for paths, group in groups:
        for path in paths:
            for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    if "allow_interpreted_subclasses=True" not in "".join(map(ast.unparse, node.decorator_list)):
                        home[node.name] = group
                    bases += [(ast.unparse(base).partition("[")[0], node.name, group) for base in node.bases]
    for base, name, group in bases:
        if home.get(base, group) != group:
            raise SystemExit(f"{name} in {group} inherits from {base} in {home[base]}: compile them in one group")


def extensions() -> list[Extension]:
    """The compiled groups, or nothing where the pure flavour is wanted or all that can be had."""
    if os.environ.get("GARDEN_PURE") == "1" or "editable_wheel" in sys.argv:
        return []
    if not has_compiler():
        print("garden-allocators: no C compiler found, so this is the pure Python flavour", file=sys.stderr)
        return []
    from mypyc.build import mypycify

    # The sources here: nothing of ours is installed yet.
    sys.path.insert(0, str(Path(__file__).parent))
    from allocators.memory_ops import HEADER, register

    register()
    groups = [(modules(folders), name) for name, folders in GROUPS.items()]
    paths = [path for group, _ in groups for path in group]
    check_inheritance(groups)
    compiled = mypycify(paths, separate=groups, opt_level="2", debug_level="0", skip_cgen_input=as_c(paths, groups))
    add_docstrings({source for extension in compiled for source in extension.sources}, paths)
    header = HEADER.relative_to(Path(__file__).parent.absolute()).as_posix()
    for extension in compiled:
        if extension.name.endswith("__mypyc"):
            # Not in place: the modules of a group share the list.
            include = [f"/FI{header}"] if sys.platform == "win32" else ["-include", header]
            # Hidden functions are called directly, and inlined, within a group.
            hidden = [] if sys.platform == "win32" else ["-fvisibility=hidden"]
            extension.extra_compile_args = [*extension.extra_compile_args, *include, *hidden]
            extension.depends.append(header)
    return compiled


COMMAND = "garden"
#: The packages of this distribution, and the file with the build id.
PACKAGES = ("allocators", "garden")
BUILD_ID = Path("garden/native/build_id")
_SOURCES = {".py", ".garden", ".h"}


def build_id() -> str:
    """A hash of all sources of the packages, names and contents, in hexadecimal: the cache's keys cover it."""
    hashed = hashlib.blake2b(digest_size=32)
    for path in sorted(path for package in PACKAGES for path in Path(package).rglob("*") if path.suffix in _SOURCES):
        for part in (path.as_posix().encode(), path.read_bytes()):
            hashed.update(len(part).to_bytes(8, "little") + part)
    return hashed.hexdigest()


def prebuilt() -> dict[str, bytes]:
    """Name and content of each file of `garden.native.prebuilt`, for this machine; none where they cannot be made."""
    target = launcher_target()
    if target is None:
        return {}
    from garden.native.codegen.module import runtime_rows
    from garden.native.executable.system import host_object
    from garden.native.prebuilt import file_name
    from garden.native.run.interpreter_machine import interpreter_object

    makers = {"runtime": runtime_rows, "interpreter": interpreter_object, "host": host_object}
    return {file_name(name, target): make(target) for name, make in makers.items()}


class BuildModules(build_py):
    """Adds the build id and what is prebuilt to what is installed. A source tree has none, since it changes."""

    made: tuple[str, ...] = ()

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            folder = Path(self.build_lib) / BUILD_ID.parent
            self.mkpath(str(folder))
            files = {BUILD_ID.name: build_id().encode(), **prebuilt()}
            for name, content in files.items():
                (folder / name).write_bytes(content)
            self.made = tuple(str(folder / name) for name in files)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), *self.made]


def launcher_target() -> str | None:
    """The target to make the launcher for; None if there cannot be one."""
    sys.path.insert(0, str(Path(__file__).parent))
    from garden.native.target import host_target

    target = host_target()
    if target is not None and importlib.util.find_spec("llvmlite") is None:
        print("garden-allocators: no llvmlite found, so the garden command starts in Python", file=sys.stderr)
        return None
    return target


class BuildLauncher(build_scripts):
    """Makes the one script, which is an executable."""

    def run(self) -> None:
        from garden.native.executable.aot import write_executable
        from garden.native.executable.launcher import launcher

        self.mkpath(self.build_dir)
        target = launcher_target()
        assert target is not None
        python = f"python{sysconfig.get_python_version()}"
        write_executable(f"{self.build_dir}/{COMMAND}", launcher(target, build_id().encode(), python))

    def get_source_files(self) -> list[str]:
        return []


def main() -> None:
    """Run the command that setuptools was given."""
    compiled = extensions()
    has_launcher = bool(compiled) and launcher_target() is not None
    setup(
        ext_modules=compiled,
        cmdclass={"build_py": BuildModules, "build_scripts": BuildLauncher},
        scripts=[COMMAND] if has_launcher else [],
        entry_points={"console_scripts": [] if has_launcher else [f"{COMMAND} = garden.cli.main:command"]},
        options={"build_ext": {"parallel": os.cpu_count()}},
    )


if __name__ == "__main__":
    main()
