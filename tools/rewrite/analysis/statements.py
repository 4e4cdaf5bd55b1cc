"""The walk over a file's statements that says what each expression is: observation first, static inference second.

Where neither knows, there is no entry.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from migrate_agent.tools.rewrite.analysis.expressions import Env, Expressions, arithmetic
from migrate_agent.tools.rewrite.analysis.facts import DICT, TUPLE, Facts, is_tensor
from migrate_agent.tools.rewrite.analysis.parameters import parameter_facts
from migrate_agent.tools.rewrite.analysis.repo import FileModel, Repo, known_to_torch
from migrate_agent.tools.rewrite.tables.registry import of_fused_package
from migrate_agent.tools.types import Observed, Span


def infer(repo: Repo, file: FileModel, observed: Mapping[Span, Observed]) -> Facts:
    """All facts of a file, by source position: what each expression evaluates to, and what a name or attribute stands for
    (`F.relu` → `torch.nn.functional.relu`)."""
    walker = _Walker(repo, file, observed)
    walker.block(file.tree.body, {})
    return walker.facts


class _Narrowed(Env):
    """An environment in which one name is known more closely; whatever is bound goes to the outer one."""

    def __init__(self, outer: Env, name: str, fact: Observed | None) -> None:
        super().__init__(outer)
        super().__setitem__(name, fact)
        self.outer = outer

    def __setitem__(self, name: str, fact: Observed | None) -> None:
        super().__setitem__(name, fact)
        self.outer[name] = fact


class _Walker(Expressions):
    """Walks statements in order with the kinds of local names; one pass, no fixed point: loops see what came before."""

    def __init__(self, repo: Repo, file: FileModel, observed: Mapping[Span, Observed]) -> None:
        super().__init__(repo, file, observed)
        self.prefix: list[str] = []

    def block(self, body: Iterable[ast.stmt], env: Env) -> None:
        for statement in body:
            self.statement(statement, env)

    def statement(self, node: ast.stmt, env: Env) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.function(node, env)
            case ast.ClassDef():
                self.class_(node, env)
            case ast.Assign():
                fact = self.expr(node.value, env)
                for target in node.targets:
                    if isinstance(target, ast.Tuple) and any(map(self.replaces_import, target.elts)):
                        for element in target.elts:
                            if not self.replaces_import(element):
                                self.bind(element, None, None, env)
                    elif not self.replaces_import(target):
                        self.bind(target, fact, node.value, env)
            case ast.AnnAssign():
                fact = self.expr(node.value, env) if node.value else None
                self.expr(node.annotation, env)
                self.bind(node.target, fact or self.annotation(node.annotation), node.value, env)
            case ast.AugAssign():
                before, operand = self.expr(node.target, env), self.expr(node.value, env)
                if isinstance(node.target, ast.Name):
                    env[node.target.id] = arithmetic(before, operand)
            case ast.For() | ast.AsyncFor():
                self.expr(node.iter, env)
                self.taken(node.target, node.iter, env)
                self.walked(node, env)
                self.block(node.body, env)
                self.block(node.orelse, env)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self.expr(item.context_expr, env)
                    if item.optional_vars:
                        self.bind(item.optional_vars, None, None, env)
                self.block(node.body, env)
            case ast.If():
                self.expr(node.test, env)
                self.block(node.body, self.narrowed(node.test, env))
                self.block(node.orelse, env)
            case _:
                self.generic(node, env)

    def walked(self, node: ast.For | ast.AsyncFor, env: Env) -> None:
        """`for name, p in m.named_parameters()`: `p` is a parameter."""
        method = node.iter.func.attr if isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Attribute) else ""
        target = node.target.elts[-1] if isinstance(node.target, ast.Tuple) else node.target
        if method in ("parameters", "named_parameters") and isinstance(target, ast.Name):
            env[target.id] = Observed(("parameter",))

    def narrowed(self, test: ast.expr, env: Env) -> Env:
        """The names inside `if isinstance(m, nn.Linear):`; assignments there stay visible outside, as in Python."""
        call = test.values[0] if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else test
        if (name := _denied(call)) and is_tensor(env.get(name)):
            return _Narrowed(env, name, None)
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "isinstance" and len(call.args) == 2):
            return env
        if not isinstance(call.args[0], ast.Name):
            return env
        classes = call.args[1].elts if isinstance(call.args[1], ast.Tuple) else [call.args[1]]
        names = [self.dotted(c) for c in classes]
        if not all(name and self.repo.is_module(name) for name in names):
            return env
        model = {name: self.repo.class_of(name) for name in names}
        kinds = tuple(f"module:{m.dotted if (m := model[name]) else name}" for name in names)
        return _Narrowed(env, call.args[0].id, Observed(kinds))

    def replaces_import(self, target: ast.expr) -> bool:
        """Whether a file's own `name = …` is for where the import of a known `name` fails."""
        dotted = self.file.bindings.get(target.id, "") if isinstance(target, ast.Name) and not self.prefix else ""
        return known_to_torch(dotted) or of_fused_package(dotted)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, env: Env) -> None:
        inner = dict(env)
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        used = {} if isinstance(node, ast.Lambda) else parameter_facts(node, self.lookup_given, self.file.names_torch)
        for argument in every:
            inner[argument.arg] = self.annotation(argument.annotation) or used.get(argument.arg)
            if argument.annotation:
                self.expr(argument.annotation, env)
        for spread, kind in ((arguments.vararg, TUPLE), (arguments.kwarg, DICT)):
            if spread:
                inner[spread.arg] = kind
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults = [*zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)]
        for argument, default in [*defaults, *((a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d)]:
            fact = self.expr(default, env)
            if inner[argument.arg] is None and fact and fact.kinds[0].startswith("function:torch.nn.init."):
                inner[argument.arg] = fact
        if isinstance(node, ast.Lambda):
            self.expr(node.body, inner)
            return
        for decorator in node.decorator_list:
            self.expr(decorator, env)
        if node.returns:
            self.expr(node.returns, env)
        self.prefix.append(node.name)
        if self.classes and every and self.prefix[:-1] and self._method():
            inner[every[0].arg] = Observed(("self",))
        self.block(node.body, inner)
        self.prefix.pop()
        if self.prefix:
            env[node.name] = Observed((f"function:{self.file.file.module}.{'.'.join([*self.prefix, node.name])}",))

    def _method(self) -> bool:
        return ".".join(self.prefix[:-1]) == self.classes[-1].qualname

    def class_(self, node: ast.ClassDef, env: Env) -> None:
        for base in (*node.bases, *(k.value for k in node.keywords), *node.decorator_list):
            self.expr(base, env)
        self.prefix.append(node.name)
        model = self.file.classes.get(".".join(self.prefix))
        if model:
            self.classes.append(model)
            constructor = [s for s in node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"]
            self.block([*constructor, *(s for s in node.body if s not in constructor)], dict(env))
            self.classes.pop()
        else:
            self.block(node.body, dict(env))
        self.prefix.pop()
        env.pop(node.name, None)


def _denied(test: ast.expr) -> str:
    """The name of which `not isinstance(name, …)` or `not torch.is_tensor(name)` says that it is something else."""
    call = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
    if not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], ast.Name):
        return ""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return call.args[0].id if function in ("isinstance", "is_tensor") else ""
