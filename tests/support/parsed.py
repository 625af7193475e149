"""What the tests of the syntax share: a program's printed forms and mistakes, and a check of its tree."""

from __future__ import annotations

from allocators import Allocator, BumpAlloc, PageAlloc
from garden.diagnostics import Diagnostic
from garden.source import Source
from garden.syntax import ast as nodes
from garden.syntax import tokens
from garden.syntax.ast import Ast
from garden.syntax.parser import Parser
from garden.syntax.printer import print_ast, print_tokens
from garden.syntax.unparser import unparse

EXAMPLE = """import ("io" "str" "testing")
import "math"

#! Sum 1..n with an accumulator.
#!
#! It takes a while.
fn sum_to(n:Int acc:Int) Int {
    # Tail calls are free.
    match {
        n == 0 { acc }
        { sum_to(n - 1 acc + n) }
    }
}

fn area(box: Record<w: Double h: Double>) Double { box.w * box.h }
fn nothing() {}
fn first(all: Array<Option<Foreign<Thing>>>) Void { let x = all nothing() }

#! Half of it.
let half = (sum_to(4 0) as Double) / 2.0
let shape = { w: half h: 3.0 inner: { flag: true } }
let list = [1 2 -3 +4 1 - 2 "text" shape.inner.flag]
testing.assert(area(shape) > 14.9)
io.println(str.concat("total " str.from(list)))
let kind = match {
    half <= 1.0 { "small" }
    half >= 2.0 != false { let y = "large" y }
    {}
}

#! Everything about options.
extern "opt" {
    #! An option with something in it.
    fn some(value: T) Option<T>
    fn none()
}
"""


class Parsed:
    """A parsed program that is closed already. Its tree has been checked."""

    def __init__(self, ast: Ast[Allocator], diagnostics: list[Diagnostic]) -> None:
        check_tree(ast)
        source = ast.source
        self.tree = print_ast(ast)
        self.tokens = print_tokens(ast)
        self.roots = [nodes.KIND_NAMES[ast.kinds[root]] for root in ast.list_at(ast.roots)]
        #: Garden source of the same program; only where there are no mistakes.
        self.unparsed = "" if diagnostics else unparse(ast)
        self.diagnostics = diagnostics
        self.rendered = [diagnostic.render(source) for diagnostic in diagnostics]
        #: Each mistake as its code and the text under it.
        self.mistakes = [f"{diagnostic.code} {marked(source, diagnostic)}".rstrip() for diagnostic in diagnostics]


def marked(source: Source, diagnostic: Diagnostic) -> str:
    """The text that a diagnostic is about."""
    return source.text[diagnostic.start : diagnostic.start + diagnostic.length].decode("utf-8", "replace")


def parse(text: str | bytes) -> Parsed:
    with BumpAlloc(PageAlloc()) as allocator, BumpAlloc(PageAlloc()) as scratch:
        diagnostics: list[Diagnostic] = []
        source = Source("test", text.encode() if isinstance(text, str) else text)
        ast = Parser(allocator, scratch, diagnostics).parse(source)
        try:
            return Parsed(ast, diagnostics)
        finally:
            ast.close()


def parse_clean(text: str) -> Parsed:
    """The same, for a program that must be right."""
    parsed = parse(text)
    assert not parsed.diagnostics, "\n".join(parsed.rendered)
    return parsed


def shape(text: str) -> str:
    """The tree of a program without mistakes on one line: how its expressions group."""
    return " ".join(parse_clean(text).tree.split()).replace("( ", "(").replace(" )", ")")


def check_tree(ast: Ast[Allocator]) -> None:
    """Assert everything that the docstrings of `ast` and `tokens` promise of the tables."""
    _check_tokens(ast)
    seen: set[int] = set()
    roots = list(ast.list_at(ast.roots))
    assert roots == sorted(roots)
    rest = [(root, 0) for root in roots]
    while rest:
        node, parent = rest.pop()
        assert 0 < node < len(ast)
        assert parent == 0 or node < parent, f"node {node} is made after node {parent} that it is part of"
        assert node not in seen, f"node {node} is in the tree twice"
        seen.add(node)
        children = _children(ast, node)
        assert children == sorted(children), f"the parts of node {node} are not in source order"
        rest += [(child, node) for child in children]


def _check_tokens(ast: Ast[Allocator]) -> None:
    last = len(ast.tokens) - 1
    assert ast.tokens.kinds[0] == tokens.NONE
    assert ast.tokens.kinds[last] == tokens.EOF
    end = 0
    for token in range(1, last + 1):
        assert end <= ast.tokens.starts[token] <= ast.tokens.ends[token] <= len(ast.source.text)
        end = ast.tokens.ends[token]
        kind = ast.tokens.kinds[token]
        text = ast.text(token)
        if kind == tokens.IDENT:
            assert ast.name(token) == text.decode()
        elif kind >= tokens.LPAREN:
            assert tokens.SPELLINGS[kind] == text.decode()
        else:
            assert kind in tokens.SPELLINGS


#: What the main token of a node can be.
_TOKENS = {
    nodes.INT: [tokens.INT],
    nodes.DOUBLE: [tokens.DOUBLE],
    nodes.STRING: [tokens.STRING],
    nodes.TRUE: [tokens.TRUE],
    nodes.FALSE: [tokens.FALSE],
    nodes.IDENT: [tokens.IDENT],
    nodes.BINARY: [kind for kind in range(tokens.PLUS, tokens.GE + 1) if kind != tokens.ASSIGN],
    nodes.UNARY: [tokens.PLUS, tokens.MINUS],
    nodes.ARRAY: [tokens.LBRACKET],
    nodes.RECORD: [tokens.LBRACE],
    nodes.LET: [tokens.IDENT],
    nodes.FN: [tokens.IDENT],
    nodes.MATCH: [tokens.MATCH],
    nodes.CALL: [tokens.LPAREN],
    nodes.FIELD: [tokens.IDENT],
    nodes.CAST: [tokens.AS],
    nodes.IMPORT: [tokens.IMPORT],
    nodes.EXTERN: [tokens.STRING],
    nodes.SIGNATURE: [tokens.IDENT],
    nodes.TYPE: list(range(tokens.T_STR, tokens.T_VOID + 1)),
    nodes.TYPE_SLOT: [tokens.IDENT],
    nodes.TYPE_OPTION: [tokens.T_OPTION],
    nodes.TYPE_ARRAY: [tokens.T_ARRAY],
    nodes.TYPE_FOREIGN: [tokens.IDENT],
    nodes.TYPE_RECORD: [tokens.T_RECORD],
}


def _children(ast: Ast[Allocator], node: int) -> list[int]:
    """The nodes that a node consists of, in source order; its lists and tokens are checked."""
    kind = ast.kinds[node]
    a = ast.a[node]
    b = ast.b[node]
    assert ast.tokens.kinds[ast.token[node]] in _TOKENS[kind]
    if kind == nodes.BINARY:
        return [a, b]
    if kind == nodes.CAST:
        return [a, b]
    if kind in (nodes.UNARY, nodes.FIELD, nodes.TYPE_OPTION, nodes.TYPE_ARRAY):
        return [a]
    if kind == nodes.LET:
        _check_docs(ast, b)
        return [a]
    if kind == nodes.ARRAY:
        return list(ast.list_at(a))
    if kind in (nodes.RECORD, nodes.TYPE_RECORD):
        return _named(ast, a)
    if kind == nodes.CALL:
        assert ast.kinds[a] in (nodes.IDENT, nodes.FIELD)
        return [a, *ast.list_at(b)]
    if kind == nodes.IMPORT:
        # A name without quotes, a mistake, is taken for a path.
        assert all(ast.tokens.kinds[path] in (tokens.STRING, tokens.IDENT) for path in ast.list_at(a))
        return []
    if kind == nodes.EXTERN:
        _check_docs(ast, b)
        signatures = list(ast.list_at(a))
        assert all(ast.kinds[signature] == nodes.SIGNATURE for signature in signatures)
        return signatures
    if kind == nodes.SIGNATURE:
        return _signature(ast, a)
    if kind == nodes.FN:
        return _signature(ast, a) + list(ast.list_at(b))
    if kind == nodes.MATCH:
        # The default arm stands anywhere, so only the arms have an order.
        arms = ast.list_at(a)
        children = []
        for index in range(0, len(arms), 2):
            children += [arms[index], *ast.list_at(arms[index + 1])]
        assert children == sorted(children)
        default = list(ast.list_at(b))
        assert default == sorted(default)
        return sorted(children + default)
    assert a == 0
    assert b == 0
    return []


def _named(ast: Ast[Allocator], index: int) -> list[int]:
    """The nodes in a list of name token, node, ..."""
    pairs = list(ast.list_at(index))
    assert all(ast.tokens.kinds[name] == tokens.IDENT for name in pairs[::2])
    return pairs[1::2]


def _signature(ast: Ast[Allocator], signature: int) -> list[int]:
    assert 0 < signature <= len(ast.extra) - 3
    _check_docs(ast, ast.extra[signature + nodes.SIGNATURE_DOCS])
    parameters = _named(ast, ast.extra[signature + nodes.SIGNATURE_PARAMETERS])
    result = ast.extra[signature + nodes.SIGNATURE_RESULT]
    return [*parameters, result] if result else parameters


def _check_docs(ast: Ast[Allocator], docs: int) -> None:
    assert all(ast.tokens.kinds[token] == tokens.DOC for token in ast.list_at(docs))
