"""Figures as one self-contained HTML page: no scripts, external style sheets or images.

The page is also well-formed XML, so that any tool can read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

_PAGE: Final = """<!DOCTYPE html>
<html lang="en" xmlns="http://www.w3.org/1999/xhtml">
<head>
<meta charset="utf-8"/>
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }}
body {{ margin: 2rem auto; max-width: 50rem; padding: 0 1rem; }}
h1, h2 {{ font-weight: 600; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.4rem; }}
h2 {{ font-size: 1.1rem; margin-top: 2rem; }}
table {{ border-collapse: collapse; }}
th, td {{ padding: 0.1rem 1rem 0.1rem 0; text-align: right; white-space: nowrap; }}
th:first-child {{ text-align: left; font-weight: normal; }}
td.chart {{ width: 25rem; }}
.bar {{ height: 0.8rem; background: #4477aa; }}
.split {{ display: flex; height: 1.2rem; margin: 0.5rem 0; }}
.live {{ background: #228833; }}
.dead {{ background: #ee6677; }}
.padding {{ background: #ccbb44; }}
.tail {{ background: #66ccee; }}
.abandoned {{ background: #aa3377; }}
.overhead {{ background: #4477aa; }}
.slack {{ background: #bbbbbb; }}
.key {{ display: inline-block; width: 0.8rem; height: 0.8rem; margin-right: 0.5rem; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def as_html(figures: Mapping[str, Any]) -> str:
    """Counters, size histogram and waste split, each as a table, with bars. Sizes are in bytes."""
    # Imported on demand: only an HTML report needs it.
    from html import escape

    title = escape(str(figures["allocator"]))
    parts = [f"<h1>{title}</h1>", _counters(figures["counters"])]
    if figures["histogram"]:
        parts.append(_histogram(figures["histogram"]))
    parts += [_waste(waste, escape(waste["allocator"])) for waste in figures["waste"]]
    return _PAGE.format(title=title, body="\n".join(parts))


def _counters(counters: Mapping[str, int]) -> str:
    rows = [_row(["", "current", "peak", "total"], heading=True)]
    for unit in ("bytes", "blocks"):
        rows.append(_row([unit, *[_number(counters[f"{which}_{unit}"]) for which in ("current", "peak", "total")]]))
    calls = ", ".join([f"{_number(counters[name])} {name}" for name in ("frees", "resizes", "failures")])
    return f"{_table(rows)}\n<p>{calls}</p>"


def _histogram(classes: Sequence[Mapping[str, int]]) -> str:
    """One row for each size class in use, named by its largest size."""
    most = max(entry["blocks"] for entry in classes)
    rows = [_row(["size up to", "blocks", ""], heading=True)]
    for entry in classes:
        bar = f'<td class="chart"><div class="bar" style="width: {100 * entry["blocks"] / most:.1f}%"></div></td>'
        rows.append(_row([_number(entry["up_to"]), _number(entry["blocks"])], bar))
    return f"<h2>Blocks by size</h2>\n{_table(rows)}"


def _waste(waste: Mapping[str, Any], allocator: str) -> str:
    total = waste["total"]
    rows = []
    pieces = []
    for name, size in waste.items():
        if name not in ("allocator", "total"):
            share = 100 * size / total if total else 0.0
            rows.append(_row([f'<span class="key {name}"></span>{name}', _number(size), f"{share:.1f} %"]))
            if size:
                pieces.append(f'<div class="{name}" style="width: {share:.2f}%" title="{name} {_number(size)}"></div>')
    heading = f"<h2>Where the {_number(total)} bytes of {allocator} are</h2>"
    return f'{heading}\n<div class="split">{"".join(pieces)}</div>\n{_table(rows)}'


def _table(rows: Sequence[str]) -> str:
    return "<table>\n{}\n</table>".format("\n".join(rows))


def _row(cells: Sequence[str], more: str = "", heading: bool = False) -> str:
    """A row whose first cell is a heading; with `heading`, all cells are."""
    kind = "th" if heading else "td"
    rest = "".join([f"<{kind}>{cell}</{kind}>" for cell in cells[1:]])
    return f"<tr><th>{cells[0]}</th>{rest}{more}</tr>"


def _number(number: int) -> str:
    return f"{number:,}"
