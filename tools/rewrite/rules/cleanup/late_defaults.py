"""Defaults of parameters that need random numbers: Python evaluates a default where no `rngs` is at hand, so the body does it."""

from __future__ import annotations

import ast

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.repo import Repo
from migrate_agent.tools.rewrite.rules.rule import Rule


class EvaluateDefaultsLate(Rule):
    """Make defaults that draw in the body: `def f(norm=make(rngs=rngs))` → `def f(norm=...)` and `if norm is ...: norm = make(rngs=rngs)`.

    Declines (a hole) where the default may be a module, which all calls would share.
    """

    KEEP = ("def f(x=(1, 2)):\n    return x\n",)
    CHANGE = (
        (
            "from torch import nn\n\ndef norm(eps):\n    return lambda d: nn.Linear(d, eps)\n\n\n"
            "def block(d, make=norm(3)):\n    return make(d)\n",
            "def norm(eps, *, rngs: nnx.Rngs):\n    return lambda d: Linear(d, eps, rngs=rngs)\n\n\n"
            "def block(d, make=..., *, rngs: nnx.Rngs):\n    if make is ...:\n        make = norm(3, rngs=rngs)\n    return make(d)\n",
        ),
    )

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        if len(self.context.functions) != 1:
            return None
        defaults = {param.name.value: param.default for param in _parameters(original.params)}
        late = [param for param in _parameters(updated.params) if param.default is not None and _names_rngs(param.default)]
        if not late:
            return None
        for param in late:
            source = defaults.get(param.name.value)
            if source is not None and not self._is_function(source):
                self.context.hole(source, "a module made once, as a default, is shared by all that use the default: make it in the body")
        names = {param.name.value for param in late}
        params = updated.params.with_changes(
            **{
                kind: [_with_sentinel(param) if param.name.value in names else param for param in getattr(updated.params, kind)]
                for kind in ("params", "kwonly_params", "posonly_params")
            }
        )
        return updated.with_changes(params=params, body=_with_defaults(updated.body, late))

    def _is_function(self, default: cst.BaseExpression) -> bool:
        """Whether the default is a function, new or not: then nothing is shared but code."""
        if isinstance(default, cst.Lambda):
            return True
        return isinstance(default, cst.Call) and _returns_functions(self.context.repo, self.context.dotted(default.func))


def _returns_functions(repo: Repo, dotted: str) -> bool:
    """Whether this names a function of the repository that gives nothing but lambdas and functions defined inside it."""
    target = repo.resolve(dotted) if dotted else None
    node = target[0].functions.get(target[1]) if target and target[1] else None
    if node is None:
        return False
    inner = {child.name for child in ast.walk(node) if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and child is not node}
    own = list(_own_returns(node))
    return bool(own) and all(
        isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in inner) for value in (item.value for item in own)
    )


def _own_returns(node: ast.AST) -> list[ast.Return]:
    returns: list[ast.Return] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            returns.append(child)
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            returns.extend(_own_returns(child))
    return returns


def _parameters(params: cst.Parameters) -> list[cst.Param]:
    return [*params.posonly_params, *params.params, *params.kwonly_params]


def _names_rngs(default: cst.BaseExpression) -> bool:
    return bool(m.findall(default, m.Name("rngs")))


def _with_sentinel(param: cst.Param) -> cst.Param:
    # `None` may be a value that callers give on purpose; nobody gives `...`.
    return param.with_changes(default=cst.Ellipsis())


def _with_defaults(body: cst.BaseSuite, late: list[cst.Param]) -> cst.IndentedBlock:
    """The body, after its docstring, begins with the defaults of the parameters that were not given."""
    statements: list[cst.BaseStatement] = []
    for param in late:
        assert param.default is not None
        name = param.name.value
        assign = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], _parenthesised(param.default))])
        statements.append(cst.If(cst.parse_expression(f"{name} is ..."), cst.IndentedBlock([assign])))
    old = list(body.body) if isinstance(body, cst.IndentedBlock) else [cst.SimpleStatementLine(list(body.body))]  # type: ignore[arg-type]
    start = (
        1
        if old and m.matches(old[0], m.SimpleStatementLine(body=[m.Expr(m.SimpleString() | m.ConcatenatedString()), m.ZeroOrMore()]))
        else 0
    )
    whole = body if isinstance(body, cst.IndentedBlock) else cst.IndentedBlock([])
    return whole.with_changes(body=[*old[:start], *statements, *old[start:]])


def _parenthesised(value: cst.BaseExpression) -> cst.BaseExpression:
    """In parentheses where it has line breaks, which an argument list allows and an assignment does not."""
    spans = "\n" in cst.Module([]).code_for_node(value) and not value.lpar
    return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]) if spans else value
