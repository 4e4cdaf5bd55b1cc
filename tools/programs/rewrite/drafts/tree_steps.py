"""Compiled steps that take modules as trees: `nnx.jit(graph=False)` flattens them as JAX does, which costs less than Flax's graphs.

A tree has two limits (https://flax.readthedocs.io/en/latest/api_reference/nnx/transforms.html#flax.nnx.jit): no variable may stand at two places, which
is an error of Flax, and what a call assigns to an attribute is lost, which is none. So programs with such classes keep their graphs.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import libcst as cst
from libcst import matchers as m

from migrate_agent.tools.rewrite.assemble.formatting import format_python
from migrate_agent.tools.types import Draft

ROOTS = frozenset({"Module", "Object", "Optimizer", "Pytree"})
"""Flax's classes whose objects a step may take."""
CONSTRUCTORS = frozenset({"__init__", "__post_init__"})
CHANGES = frozenset("append appendleft clear extend insert pop popitem popleft remove reverse setdefault sort".split())
"""Methods of lists and dictionaries that change them. What Flax's own objects call `update` or `add` changes variables, which a tree keeps."""
JIT = m.Attribute(m.Name("nnx"), m.Name("jit"))
DONATED = "donate_argnames"
ALIASES = "Duplicate"
"""How Flax's message begins where a variable stands at two places of a tree."""


def with_tree_steps(draft: Draft) -> Draft:
    """The draft, whose compiled functions take modules as trees; the same where a class of it assigns attributes in calls."""
    trees = {path: ast.parse(text) for path, text in draft.files.items() if path.endswith(".py")}
    if any(True for _ in late_attributes(trees.values())):
        return draft
    changed = {path: text for path in trees if (text := _with_trees(draft.files[path])) != draft.files[path]}
    return replace(draft, files={**draft.files, **format_python(changed)}) if changed else draft


def late_attributes(trees: Collection[ast.Module]) -> Iterator[tuple[str, str]]:
    """Class and attribute of each assignment to `self` in a method of a module that its constructor does not call."""
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    modules = _modules(classes)
    for cls in classes:
        if cls.name not in modules:
            continue
        methods = {node.name: node for node in cls.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
        building = _building(methods)
        for name, method in methods.items():
            if name not in building:
                yield from ((cls.name, attribute) for attribute in _assigned(method))


def _modules(classes: Collection[ast.ClassDef]) -> set[str]:
    """The classes that derive from one of Flax's, by name."""
    names = set(ROOTS)
    while more := {cls.name for cls in classes if cls.name not in names and names.intersection(map(_last, cls.bases))}:
        names |= more
    return names - ROOTS


def _last(base: ast.expr) -> str:
    """The last name of a base class: `nnx.Module` → `Module`."""
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""


def _building(methods: Mapping[str, ast.AST]) -> set[str]:
    """The methods that run in construction alone, as far as their class shows."""
    calls = {name: _own_calls(method) for name, method in methods.items()}
    building = CONSTRUCTORS & methods.keys()
    todo = list(building)
    while todo:
        new = calls[todo.pop()] & methods.keys() - building
        building |= new
        todo += new
    used = {name for caller, names in calls.items() if caller not in building for name in names}
    return set(building - used) | (CONSTRUCTORS & methods.keys())


def _own_calls(method: ast.AST) -> set[str]:
    """The methods of its own object that a method names."""
    return {node.attr for node in ast.walk(method) if isinstance(node, ast.Attribute) and _is_self(node.value)}


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _assigned(method: ast.AST) -> Iterator[str]:
    """The attributes that a method assigns, deletes, or sets by name, but for those of what a static method constructs, and the lists and dictionaries
    among them that it changes.
    """
    own = _constructed(method)
    for node in ast.walk(method):
        match node:
            case ast.Attribute(value=value, attr=name, ctx=ast.Store() | ast.Del()) if ast.unparse(value) not in own:
                yield name
            case ast.Call(func=ast.Name(id="setattr") | ast.Attribute(attr="__setattr__"), args=args):
                yield ast.unparse(args[1]) if len(args) > 1 else "any"
            case ast.Attribute(attr="__dict__") | ast.Call(func=ast.Name(id="vars")):
                yield "any"
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=name), attr=change)) if change in CHANGES:
                yield name
            case ast.Subscript(value=ast.Attribute(attr=name), slice=index, ctx=ast.Store() | ast.Del()) if name != "__dict__" and _is_key(
                index
            ):
                yield name


def _is_key(index: ast.expr) -> bool:
    """Whether an index may be a dictionary's key: those of variables are numbers, slices and `...`."""
    return not isinstance(index, (ast.Slice, ast.Tuple)) and not (isinstance(index, ast.Constant) and not isinstance(index.value, str))


def _constructed(method: ast.AST) -> set[str]:
    """The names of what a static method, which has no object, gets from calls."""
    if not isinstance(method, ast.FunctionDef) or "staticmethod" not in map(ast.unparse, method.decorator_list):
        return set()
    rows = [node for node in ast.walk(method) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]
    return {ast.unparse(target) for row in rows for target in row.targets}


def _with_trees(text: str) -> str:
    if "nnx.jit" not in text:
        return text
    return cst.parse_module(text).visit(_Trees()).code


class _Trees(m.MatcherDecoratableTransformer):
    """`@nnx.jit(donate_argnames=("model", "optimizer"))` → `@nnx.jit(graph=False, donate_argnums=(0, 1))`, and `@nnx.jit` → `@nnx.jit(graph=False)`.

    Flax hands donated arguments of a tree back by their numbers, and knows no names here.
    """

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        """A function with one of these decorators."""
        names = [parameter.name.value for parameter in updated_node.params.params]
        decorators = [one.with_changes(decorator=_as_tree(one.decorator, names)) for one in updated_node.decorators]
        return updated_node.with_changes(decorators=decorators)


def _as_tree(decorator: cst.BaseExpression, names: list[str]) -> cst.BaseExpression:
    graph = cst.parse_expression("nnx.jit(graph=False)")
    assert isinstance(graph, cst.Call)
    if m.matches(decorator, JIT):
        return graph
    if not m.matches(decorator, m.Call(JIT)):
        return decorator
    call = cst.ensure_type(decorator, cst.Call)
    keywords = {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}
    if len(keywords) != len(call.args) or "graph" in keywords:
        return decorator
    args = [_by_number(arg, names) if arg.keyword is not None and arg.keyword.value == DONATED else arg for arg in call.args]
    return call.with_changes(args=[*graph.args, *args])


def _by_number(donated: cst.Arg, names: list[str]) -> cst.Arg:
    """`donate_argnames=("model",)` → `donate_argnums=(0,)`."""
    value = ast.literal_eval(cst.Module([]).code_for_node(donated.value))
    numbers = tuple(names.index(name) for name in ([value] if isinstance(value, str) else value))
    number = cst.parse_expression(repr(numbers[0]) if len(numbers) == 1 else repr(numbers))
    return donated.with_changes(keyword=cst.Name("donate_argnums"), value=number)
