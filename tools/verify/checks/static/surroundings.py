"""The candidate computes the same wherever and whenever it runs: it asks for no platform, no number of devices and no time, and counts no calls.

Both sides run on one machine, so that what a port does elsewhere is compared with nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from migrate_agent.tools.types import Verdict
from migrate_agent.tools.verify.checks.base import Check
from migrate_agent.tools.verify.checks.shared.handed_objects import handed_alone
from migrate_agent.tools.verify.evidence.candidate import Results
from migrate_agent.tools.verify.evidence.own_code import own_lines
from migrate_agent.tools.verify.evidence.parsed_source import Source, bindings, dotted, judged, once, uses, within

# `lax.platform_dependent` is not among them: the check `kernels` compares its sides.
PLATFORM = tuple(
    f"jax.{name}"
    for name in """default_backend devices local_devices device_count local_device_count process_index process_count process_indices
    lax.axis_index lib.xla_bridge host_count host_id""".split()
)
OTHERS = tuple(
    """time datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today datetime.date.today platform sys.platform
    sys.version_info sys.version threading uuid.uuid1 uuid.uuid4 secrets jax.__version__ jax.version flax.__version__""".split()
)
ASKING = frozenset(f"{verb}{end}" for verb in ("acquire", "release", "locked") for end in ("", "_lock")) | {
    "__enter__",
    "__exit__",
    "_is_owned",
}
"""Attributes of locks that say whether they are taken, or take them beyond a `with`."""
LOCKS = ("threading.Lock", "threading.RLock")
"""What they guard is the same in each call, unless a program asks them whether they are taken."""
PLACES = ("jax.device_put", "jax.sharding", "jax.make_mesh", "jax.experimental.mesh_utils")
"""What puts values on devices changes none of them: its arguments may name some."""
CHANGES = frozenset("append extend insert pop clear update setdefault add remove discard popitem __setitem__ appendleft".split())


def judge(results: Results) -> Verdict:
    """Fail for the first use in code that is no copied helper's."""
    decorators = decorators_alone(results.sources)
    constructions = [text for example in (*results.examples, *results.translated) for text in (example.init, example.setup)]
    handed = handed_alone([source.tree for source in results.sources], constructions)
    texts = " ".join([*constructions, *(example.call for example in (*results.examples, *results.translated))])
    unused = unused_functions(results.sources) - {results.unit.name.partition(".")[0], *re.findall(r"\w+", texts)}
    return judged("surroundings", results.sources, lambda source: find(source, decorators, handed, unused))


@once
def find(
    source: Source,
    decorators: frozenset[str] = frozenset(),
    handed: frozenset[str] = frozenset(),
    unused: frozenset[str] = frozenset(),
) -> Iterator[tuple[int, str]]:
    """(line, message) of each use. What `decorators` change themselves is changed while the file is imported, and by no call; what objects of the
    classes `handed` advance, they advance for the call that they are handed to alone. Nothing runs the functions `unused`."""
    own, placed = own_lines(source), _placed(source)
    allowed = () if _asks_locks(source.tree) else LOCKS
    for use in uses(source):
        if use.line in own and within(use.name, OTHERS) and not within(use.name, allowed):
            yield use.line, f"asks for {use.name}, which is no argument of the model"
        elif use.line in own and within(use.name, PLATFORM) and use.line not in placed:
            yield use.line, f"asks for {use.name}: what it computes on another platform is compared with nothing"
    for name, line in _kept(source.tree, decorators, unused):
        if line in own:
            yield line, f"changes {name} of the file in a call, so that a later call may differ"
    for name, line in _advanced(source.tree, handed):
        if line in own:
            yield line, f"advances {name} in a call, which a compiled call does while it is traced alone: take the value as an argument"


def _asks_locks(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr in ASKING for node in ast.walk(tree))


def _placed(source: Source) -> frozenset[int]:
    """Lines of calls that put values on devices, and of imports."""
    table = bindings(source.tree)
    lines = set[int]()
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            lines.add(node.lineno)
        elif isinstance(node, ast.Call):
            head, _, rest = dotted(node.func).partition(".")
            if within(f"{table.get(head, '')}.{rest}".rstrip("."), PLACES):
                lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(lines)


def decorators_alone(sources: Sequence[Source]) -> frozenset[str]:
    """Names that stand in these files as plain decorators of top-level definitions, `@register`, or as what gives one, `@register("net")`, which is told by
    `register()`, and nowhere else, not even as a word."""
    plain_names, called_names, elsewhere = set[str](), set[str](), set[str]()
    for source in sources:
        decorators = [one for statement in source.tree.body for one in getattr(statement, "decorator_list", ())]
        plain = {id(one) for one in decorators if isinstance(one, ast.Name)}
        called = {id(one.func) for one in decorators if isinstance(one, ast.Call)}
        for node in ast.walk(source.tree):
            match node:
                case ast.Name(id=name):
                    (plain_names if id(node) in plain else called_names if id(node) in called else elsewhere).add(name)
                case ast.Attribute(attr=name) | ast.Constant(value=str(name)) | ast.alias(name=name, asname=str()):
                    elsewhere.add(name)
    return frozenset(plain_names - called_names - elsewhere) | {f"{name}()" for name in called_names - plain_names - elsewhere}


def unused_functions(sources: Sequence[Source]) -> frozenset[str]:
    """Names of top-level functions of these files that stand nowhere else in them, not even as a word: what registers the classes of other files, say."""
    named = set[str]()
    for node in (node for source in sources for node in ast.walk(source.tree)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)) | ast.alias(name=name, asname=str()):
                named.add(name)
    functions = [one for source in sources for one in source.tree.body if isinstance(one, ast.FunctionDef) and not one.decorator_list]
    return frozenset(one.name for one in functions) - named


def _while_imported(tree: ast.Module, decorators: frozenset[str]) -> set[int]:
    """The nodes that top-level functions with these names run themselves, and the decorators that they give: not what those define for later."""
    found, todo = set[int](), list[ast.AST]()
    for function in (one for one in tree.body if isinstance(one, ast.FunctionDef)):
        if function.name in decorators:
            todo += function.body
        elif f"{function.name}()" in decorators:
            todo += [*function.body, *(inner for one in _given_back(function) for inner in one.body)]
    while todo:
        node = todo.pop()
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.GeneratorExp)):
            found.add(id(node))
            todo += ast.iter_child_nodes(node)
    return found


def _given_back(function: ast.FunctionDef) -> list[ast.FunctionDef]:
    """The functions that a function defines and returns, and names nowhere else: nothing can keep them for later."""
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    returned = {id(node.value) for node in function.body if isinstance(node, ast.Return)}
    inner = [one for one in function.body if isinstance(one, ast.FunctionDef) and not one.decorator_list]
    return [one for one in inner if all(id(node) in returned for node in names if node.id == one.name)]


def _kept(tree: ast.Module, decorators: frozenset[str], unused: frozenset[str]) -> Iterator[tuple[str, int]]:
    """Names of the file whose values a function changes in a call, with the line."""
    imported = _while_imported(tree, decorators)
    imported |= {id(node) for one in tree.body if isinstance(one, ast.FunctionDef) and one.name in unused for node in ast.walk(one)}
    containers = {
        target.id
        for statement in tree.body
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and _is_container(statement.value)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Name)
    }
    for function in (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
        shared = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
        local = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
        local |= {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)} - shared
        for node in (node for node in ast.walk(function) if id(node) not in imported):
            match node:
                case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()) if name in containers - local:
                    yield name, node.lineno
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=change)) if name in containers - local and change in CHANGES:
                    yield name, node.lineno
                case ast.Name(id=name, ctx=ast.Store()) if name in shared:
                    yield name, node.lineno
                case ast.Call(func=ast.Name(id="next"), args=[ast.Name(id=name), *_]) if name in containers - local:
                    yield name, node.lineno


def _advanced(tree: ast.Module, handed: frozenset[str]) -> Iterator[tuple[str, int]]:
    """Iterators that methods, constructors aside, take from their object and advance, with the line: `next(self.beta)`, also under another name. Not
    those of the classes `handed`."""
    without = {id(node) for cls in tree.body if isinstance(cls, ast.ClassDef) and cls.name in handed for node in cls.body}
    methods = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and id(node) not in without)
    for method in (node for node in methods if node.name != "__init__" and node.args.args):
        own = method.args.args[0].arg
        names = {name: chain for name, value in _bound(method) if (chain := _of_object(value, own))}
        for node in ast.walk(method):
            match node:
                case (
                    ast.Call(func=ast.Name(id="next"), args=[iterator, *_]) | ast.Call(func=ast.Attribute(value=iterator, attr="__next__"))
                ):
                    value = iterator.value if isinstance(iterator, ast.NamedExpr) else iterator
                    chain = names.get(value.id, "") if isinstance(value, ast.Name) else _of_object(value, own)
                    if chain:
                        yield chain, node.lineno


def _bound(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """The names that a function binds to an expression, with it."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((target.id, value) for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) | ast.NamedExpr(target=ast.Name(id=name), value=value):
                yield name, value


def _of_object(node: ast.expr, own: str) -> str:
    """The text of an attribute of the object named `own`, `self.a.b`, and nothing for another expression."""
    chain = dotted(node)
    return chain if chain.startswith(f"{own}.") else ""


def _is_container(node: ast.expr | None) -> bool:
    return isinstance(node, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.Call))


CHECK = Check("static", "surroundings", judge)
