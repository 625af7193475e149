"""Programs of a few shapes and any length, each written in garden, Python and C with about as many lines.

All define functions only, of one Int, and compute the same; Python's Ints do not wrap. The tests of large programs
run the garden ones and expect what Python says.
"""

from __future__ import annotations

from typing import Final, NamedTuple

#: A prime, so that keys repeat only after this many.
MAX_ARMS: Final = 1009


class Shape(NamedTuple):
    """One program in three languages."""

    garden: str
    python: str
    c: str


def tower(count: int) -> Shape:
    """`count` functions, each of which calls the one before it, in a match of two arms."""
    garden = ["fn f0(n:Int) Int { n }"]
    python = ["def f0(n):", "    return n"]
    c = ["long f0(long n) { return n; }"]
    for index in range(1, count):
        below = f"f{index - 1}"
        garden += [
            f"fn f{index}(n:Int) Int {{",
            "    match {",
            f"        n == 0 {{ {below}(n + {index}) }}",
            f"        {{ {below}(n - 1) * 3 }}",
            "    }",
            "}",
        ]
        python += [
            f"def f{index}(n):",
            "    if n == 0:",
            f"        return {below}(n + {index})",
            "    else:",
            f"        return {below}(n - 1) * 3",
            "",
        ]
        c += [
            f"long f{index}(long n) {{",
            "    if (n == 0)",
            f"        return {below}(n + {index});",
            "    else",
            f"        return {below}(n - 1) * 3;",
            "}",
        ]
    return _joined(garden, python, c)


def match(count: int) -> Shape:
    """`f`: `count` arms, at most `MAX_ARMS`, for keys that are dense but in no order: arm k gives k, no arm -1."""
    keys = [arm * 7 % MAX_ARMS for arm in range(count)]
    garden = [f"        n == {key} {{ {arm} }}" for arm, key in enumerate(keys)]
    python = [f"        case {key}: return {arm}" for arm, key in enumerate(keys)]
    c = [f"        case {key}: return {arm};" for arm, key in enumerate(keys)]
    return _joined(
        ["fn f(n:Int) Int {", "    match {", *garden, "        { -1 }", "    }", "}"],
        ["def f(n):", "    match n:", *python, "        case _: return -1"],
        ["long f(long n) {", "    switch (n) {", *c, "        default: return -1;", "    }", "}"],
    )


def body(count: int) -> Shape:
    """`f`: `count` lines, each of which binds a name to the value of the line before, times 3, plus its number."""
    lines = [f"x{index} = x{index - 1} * 3 + {index}" for index in range(1, count + 1)]
    return _joined(
        ["fn f(n:Int) Int {", "    let x0 = n", *[f"    let {line}" for line in lines], f"    x{count}", "}"],
        ["def f(n):", "    x0 = n", *[f"    {line}" for line in lines], f"    return x{count}"],
        [
            "long f(long n) {",
            "    long x0 = n;",
            *[f"    long {line};" for line in lines],
            f"    return x{count};",
            "}",
        ],
    )


def expression(count: int) -> Shape:
    """`f`: the alternating sum of `count` products, one a line."""
    terms = [f"    {'-+'[index % 2]} n * {index}" for index in range(1, count + 1)]
    return _joined(
        ["fn f(n:Int) Int {", "    0", *terms, "}"],
        ["def f(n):", "    return (0", *terms, "    )"],
        ["long f(long n) {", "    return 0", *terms, "    ;", "}"],
    )


def _joined(garden: list[str], python: list[str], c: list[str]) -> Shape:
    return Shape(*["\n".join(lines) + "\n" for lines in (garden, python, c)])
