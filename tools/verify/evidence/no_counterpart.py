"""Statements of an original that no port has a counterpart of: moves between devices, questions about other processes, what is there for torch's
compilers alone, and what only makes a line of torch's log of usage.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from migrate_agent.tools.rewrite.analysis.downloads.loading import Loading, Names, reports
from migrate_agent.tools.rewrite.analysis.repo import known_to_torch
from migrate_agent.tools.verify.evidence.parsed_source import bindings, dotted

_QUERY = re.compile(r"torch\.distributed\.(is_available|is_initialized|get_world_size|get_rank)")
_DEVICE = re.compile(r"(cpu|cuda|mps|xpu)(:\d+)?")
_AVAILABLE = re.compile(r"torch\.distributed\.(is_available|is_initialized)")
_COMPILING = re.compile(
    r"torch\.(jit\.is_(scripting|tracing)|(compiler|_dynamo)\.is_(dynamo_)?compiling|compiler\.is_exporting|onnx\.is_in_onnx_export)"
)
_LOGGING = re.compile(r"torch\._C\._log_api_usage_(once|metadata)")


def moves_device(node: ast.AST, tree: ast.AST | None = None) -> bool:
    """Whether a statement is `x = x.cuda()`, `x = x.cpu()` or `x = x.to(device)`, which changes no value and has no counterpart in a port.

    `x.to(…)` may change the dtype, so that its argument must be a device by its text, or a name that `tree`, the file, gives devices only.
    """
    match node:
        case ast.Assign(targets=[target], value=ast.Call(func=ast.Attribute(value=moved, attr="cuda" | "cpu"))):
            return ast.unparse(target) == ast.unparse(moved)
        case ast.Assign(targets=[target], value=ast.Call(func=ast.Attribute(value=moved, attr="to"), args=positional, keywords=keywords)):
            named = [keyword.value for keyword in keywords if keyword.arg == "device"]
            others = {keyword.arg for keyword in keywords} - {"device", "non_blocking", "copy"}
            devices = [*positional[:1], *named]
            is_move = len(positional) <= 1 and not others and len(devices) == 1 and _is_device(devices[0], tree)
            return is_move and ast.unparse(target) == ast.unparse(moved)
    return False


def _is_device(value: ast.expr, tree: ast.AST | None) -> bool:
    match value:
        case ast.Constant(value=str(text)):
            return _DEVICE.fullmatch(text) is not None
        case ast.Attribute(attr="device"):
            return True
        case ast.Call(func=function):
            return dotted(function) == "torch.device"
        case ast.IfExp(body=body, orelse=orelse):
            return _is_device(body, tree) and _is_device(orelse, tree)
        case ast.Name(id=name) if tree is not None:
            values = list(_given(name, tree))
            return bool(values) and all(_is_device(one, None) for one in values)
    return False


def _given(name: str, tree: ast.AST) -> Iterator[ast.expr]:
    """What a file gives a name: the values that are assigned to it, and the annotations of parameters (an absent one is no device)."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                bound = {inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)}
                if name in bound:
                    yield value
            case ast.arg(arg=argument, annotation=annotation) if argument == name:
                yield annotation or ast.Constant(None)
            case ast.Name(id=other, ctx=ast.Store()) if other == name and not _is_assigned(node, tree):
                yield ast.Constant(None)


def _is_assigned(name: ast.Name, tree: ast.AST) -> bool:
    return any(isinstance(node, ast.Assign) and any(name is target for target in node.targets) for node in ast.walk(tree))


def asks_processes(tree: ast.Module, nodes: Sequence[ast.stmt]) -> bool:
    """Whether a statement does nothing but give the answer of torch's process group, or, in a function that gives it, a number where there is none.

    `return dist.get_world_size()`, and `return 1` below `if not dist.is_initialized():` before it. One program drives all devices in JAX, so that a
    port knows the answer. What processes send each other (`dist.all_reduce(x)`) is no question, and a number that is used elsewhere is no answer.
    """
    if len(nodes) != 1 or not isinstance(nodes[0], (ast.Return, ast.Assign)) or nodes[0].value is None:
        return False
    imported = bindings(tree)
    if isinstance(nodes[0], ast.Return) and isinstance(nodes[0].value, ast.Constant):
        return any(_answers_instead(function, nodes, imported) for function in ast.walk(tree) if isinstance(function, ast.FunctionDef))
    return _is_query(nodes[0].value, imported)


def _answers_instead(function: ast.FunctionDef, nodes: Sequence[ast.stmt], imported: Mapping[str, str]) -> bool:
    """Whether a function has these statements where there is no process group, and gives the group's answer otherwise."""
    inside = list(ast.walk(function))
    absent = any(isinstance(node, ast.If) and node.body == list(nodes) and _asks_availability(node.test, imported) for node in inside)
    return absent and any(isinstance(node, ast.Return) and node.value is not None and _is_query(node.value, imported) for node in inside)


def _is_query(value: ast.expr, imported: Mapping[str, str]) -> bool:
    return isinstance(value, ast.Call) and _QUERY.fullmatch(_full_name(value, imported)) is not None


def _asks_availability(test: ast.expr, imported: Mapping[str, str]) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    return isinstance(test, ast.Call) and _AVAILABLE.fullmatch(_full_name(test, imported)) is not None


def _full_name(call: ast.Call, imported: Mapping[str, str]) -> str:
    head, _, rest = dotted(call.func).partition(".")
    return ".".join(part for part in (imported.get(head, head), rest) if part)


def for_compilers(statement: ast.stmt, block: Sequence[ast.stmt], imported: Mapping[str, str]) -> bool:
    """Whether a block of a statement runs for torch's compilers alone: the body of `if torch.jit.is_scripting():`, or the `else` of its opposite. Or for
    older releases of torch: the `else` of `if hasattr(torch, "relu"):`."""
    if not isinstance(statement, ast.If):
        return False
    test, side, other = statement.test, statement.body, statement.orelse
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, side, other = test.operand, other, side
    if _asks_for_known(test, imported):
        return bool(block) and block[0] in other
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and side is statement.body else [test]
    is_query = any(isinstance(part, ast.Call) and _COMPILING.fullmatch(_imported_name(part, imported)) for part in parts)
    return is_query and bool(block) and block[0] in side


def _asks_for_known(test: ast.expr, imported: Mapping[str, str]) -> bool:
    """Whether a test is `hasattr(torch.special, "erf")`, for a name that the tables of the rewriter know."""
    match test:
        case ast.Call(func=ast.Name("hasattr"), args=[owner, ast.Constant(value=str(name))]):
            head, _, rest = dotted(owner).partition(".")
            module = ".".join(part for part in (imported.get(head, ""), rest) if part)
            return module.partition(".")[0] == "torch" and known_to_torch(f"{module}.{name}")
    return False


def only_logs(tree: ast.Module, nodes: Sequence[ast.stmt]) -> bool:
    """Whether statements of a function only give names that nothing reads but a line of torch's log of usage: `name = obj.__name__`."""
    function = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _holds(node, nodes)), None)
    if function is None or any(isinstance(node, (ast.Global, ast.Nonlocal)) for node in ast.walk(function)):
        return False
    imported = bindings(tree)
    statements = [node for node in ast.walk(function) if isinstance(node, (ast.Expr, ast.Assign))]
    logging = [node for node in statements if isinstance(node, ast.Expr) and _is_log(node, imported)]
    assignments = [node for node in statements if isinstance(node, ast.Assign) and not _does_more(node)]
    if not logging:
        return False
    read = _names_read(function, without=logging)
    return all(any(node is other for other in assignments) and not _names_bound(node) & read for node in nodes)


def _holds(function: ast.FunctionDef, nodes: Sequence[ast.stmt]) -> bool:
    inside = {id(node) for node in ast.walk(function)}
    nested = any(isinstance(node, (ast.FunctionDef, ast.Lambda)) for node in ast.walk(function) if node is not function)
    return not nested and all(id(node) in inside for node in nodes)


def _is_log(node: ast.Expr, imported: Mapping[str, str]) -> bool:
    return isinstance(node.value, ast.Call) and _LOGGING.fullmatch(_imported_name(node.value, imported)) is not None


def _does_more(node: ast.Assign) -> bool:
    """Whether it does more than give names what is there already."""
    plain = all(isinstance(target, ast.Name) for target in node.targets)
    return not plain or any(isinstance(inner, (ast.Call, ast.Await, ast.NamedExpr, ast.Yield)) for inner in ast.walk(node.value))


def _names_bound(node: ast.stmt) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)}


def _names_read(function: ast.FunctionDef, without: Sequence[ast.stmt]) -> set[str]:
    left_out = {id(inner) for statement in without for inner in ast.walk(statement)}
    return {
        node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in left_out
    }


def _imported_name(call: ast.Call, imported: Mapping[str, str]) -> str:
    """The full name of what is called, where the file imports it; "" for a name that the file may have made itself."""
    return _full_name(call, imported) if dotted(call.func).partition(".")[0] in imported else ""


def loads_downloads(tree: ast.Module, nodes: Sequence[ast.stmt]) -> bool:
    """Whether statements only fill a state dictionary with weights of a download, and load it: nothing is downloaded where an original is compared, and
    a port takes its weights from a file."""
    imported = bindings(tree)

    def name_of(node: ast.expr) -> str:
        head, _, rest = dotted(node).partition(".")
        return ".".join(part for part in (imported[head], rest) if part) if head in imported else ""

    names = Names(name_of, lambda _: True, lambda function: reports(tree, function, name_of))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any(map(names.is_download, ast.walk(function))):
            loading = {id(inner) for statement in Loading(function, names).statements for inner in ast.walk(statement)}
            if all(id(node) in loading for node in nodes):
                return True
    return False
