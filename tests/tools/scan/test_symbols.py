"""Names that source text defines, needs and registers."""

from __future__ import annotations

import ast

import pytest

from migrate_agent.tools.scan.symbols import (
    attribute_chains,
    defined_names,
    global_names,
    import_lines,
    import_of,
    registered_with,
    registrars,
)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(): x = 1", ["f"]),
        ("import a.b, c as d", ["a", "d"]),
        ("x, (y, *z) = v", ["x", "y", "z"]),
        ("TABLE['x'] = 1", ["TABLE"]),  # changes what it names
        ("if a:\n    import b\nelse:\n    b = None", ["b"]),
        ("y = [i for i in x]", ["y"]),
    ],
)
def test_defined_names(source: str, names: list[str]) -> None:
    assert defined_names(ast.parse(source).body[0]) == names


@pytest.mark.parametrize(
    ("source", "names", "at_import"),
    [
        ("def f(a=x):\n    return y", {"x", "y"}, {"x"}),
        ("z = [i for i in xs]", {"xs"}, {"xs"}),  # a comprehension runs at once
        ("z = [i for i in xs] + [i]", {"xs", "i"}, {"xs", "i"}),
        ("z = {i: [j for j in i] for i in i}", {"i"}, {"i"}),
        ("z = [i for i in xs]\ndef f(j):\n    return i + j", {"xs", "i"}, {"xs"}),
        ("z = [f(i) for i, f in xs if i]\ndef g(): return [i for i in z]", {"xs", "z"}, {"xs"}),
        ("class C(B):\n    def f(self):\n        return g", {"B", "g"}, {"B"}),
        ("class C:\n    A = A\n    b = 1\n    c = b", {"A"}, {"A"}),  # the global one, before the class has its own
        ("def f(x):\n    class C:\n        y = x\n        x = 1", {"x"}, set()),  # a class body looks past the function
        ("class C:\n    f = f(1)\n    def g(self, a=g): pass", {"f", "g"}, {"f", "g"}),
        ("def f(a: 'T', b: Literal['u']) -> Optional['V']: pass", {"T", "V", "Literal", "Optional"}, {"Literal", "Optional"}),
    ],
)
def test_global_names(source: str, names: set[str], at_import: set[str]) -> None:
    assert global_names(source) == names
    assert global_names(source, imports_only=True) == at_import


def test_registrations() -> None:
    body = ast.parse("TABLE = {}\n\ndef register(f):\n    TABLE[f.__name__] = f\n    return f\n\n@register\ndef g(): pass\n").body
    tables = registrars(body, {"TABLE"})
    assert tables == {"register": {"TABLE"}}
    assert registered_with(body[-1], {"TABLE"}, tables) == {"TABLE"}
    assert registered_with(ast.parse("TABLE.add(f)").body[0], {"TABLE"}, {}) == {"TABLE"}
    assert registered_with(ast.parse("f(TABLE)").body[0], {"TABLE"}, {}) == frozenset()


@pytest.mark.parametrize(
    ("block", "tables"),
    [
        ("for c in rows:\n    TABLE.append(dict(c))", {"TABLE"}),
        ("for c in rows:\n    for kind in ('a', 'b'):\n        copy = dict(c)\n        TABLE.append(copy)", {"TABLE"}),
        ("try:\n    import fast\n    TABLE.add(fast)\nexcept ImportError:\n    pass", {"TABLE"}),
        ("if fast:\n    @register\n    def f(): pass", {"TABLE"}),
        ("for c in rows:\n    register(c)", {"TABLE"}),
        ("for x in data:\n    TABLE.train()", set()),  # not known to put anything into it
        ("for x in data:\n    y = TABLE.pop()", set()),
        ("def f():\n    TABLE.append(1)", set()),  # not run at import
    ],
)
def test_registrations_in_blocks(block: str, tables: set[str]) -> None:
    assert registered_with(ast.parse(block).body[0], {"TABLE"}, {"register": {"TABLE"}}) == tables


def test_attribute_chains() -> None:
    assert attribute_chains("layers.conv.Block(other.x)", "layers") == {("conv", "Block")}
    assert attribute_chains("getattr(layers, name)(layers.conv.__dict__.get)", "layers") == {(), ("conv",)}


def test_imports() -> None:
    assert import_lines("from a import b, c as d\nimport e.f\n", {"d", "e"}) == ["from a import c as d", "import e.f"]
    assert (import_of("b", "a.b"), import_of("c", "a.b")) == ("from a import b", "from a import b as c")
