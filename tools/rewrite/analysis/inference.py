"""Infers what the expressions of a file evaluate to: what the examples showed goes first, the
source second.

Where neither tells, an expression has no fact.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from migrate_agent.tools.rewrite.analysis.facts import (
    BOOL,
    DEVICE,
    DICT,
    DTYPE,
    DTYPES,
    FLOAT,
    INT,
    LIST,
    NONE,
    SIZE,
    STR,
    TENSOR,
    TUPLE,
    UNKNOWN,
    Facts,
    Result,
    is_tensor,
    join,
    proves_tensor,
    span_of,
    tensor_only,
)
from migrate_agent.tools.rewrite.analysis.names.looked_up_names import nameable, pattern_of_name
from migrate_agent.tools.rewrite.analysis.names.tensor_types import kind_of, type_that_stands_behind
from migrate_agent.tools.rewrite.analysis.parameter_loops import handed_out
from migrate_agent.tools.rewrite.analysis.parameters import literal_integer, parameter_facts
from migrate_agent.tools.rewrite.analysis.plain_layers.class_names import name_test, owner_in
from migrate_agent.tools.rewrite.analysis.repo import MODULE_BASES, ClassModel, FileModel, Repo, known_to_torch
from migrate_agent.tools.rewrite.analysis.results import Key, joined, key_of, methods_called, result_of
from migrate_agent.tools.rewrite.tables.ops.dtype import LEGACY_TYPES
from migrate_agent.tools.rewrite.tables.registry import layers, methods, of_fused_package, ops, public_name
from migrate_agent.tools.scan.exports import dotted_text
from migrate_agent.tools.types import Observed, Span

TENSOR_ATTRIBUTES: Mapping[str, Observed] = {
    "T": TENSOR, "mT": TENSOR, "H": TENSOR, "mH": TENSOR, "data": TENSOR, "grad": TENSOR, "real": TENSOR, "imag": TENSOR,
    "shape": SIZE, "dtype": DTYPE, "device": DEVICE, "ndim": INT, "is_cuda": BOOL, "is_xpu": BOOL, "requires_grad": BOOL, "itemsize": INT,
}  # fmt: skip
BUILTIN_KINDS: Mapping[str, Observed] = {
    "int": INT, "len": INT, "float": FLOAT, "bool": BOOL, "isinstance": BOOL, "hasattr": BOOL, "callable": BOOL, "str": STR, "repr": STR,
    "tuple": TUPLE, "list": LIST, "dict": DICT, "sorted": LIST, "type": Observed(("class",)),
}  # fmt: skip
TENSOR_SEQUENCES = frozenset(
    """chunk split unbind tensor_split hsplit vsplit dsplit meshgrid broadcast_tensors split_with_sizes unsafe_chunk topk sort max min median
    nanmedian kthvalue mode cummax cummin var_mean std_mean aminmax slogdet svd qr eigh eig lstsq frexp""".split()
)
"""Functions and methods that give a tuple of tensors, some of them a named one (`values`, `indices`)."""
ANNOTATIONS: Mapping[str, Observed] = {
    **dict.fromkeys(("torch.Tensor", "Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.BoolTensor", "torch.IntTensor"), TENSOR),
    "int": INT, "float": FLOAT, "bool": BOOL, "str": STR,
}  # fmt: skip

Env = dict[str, Observed | None]


def infer(repo: Repo, file: FileModel, observed: Mapping[Span, Observed]) -> Facts:
    """The facts of a file: what each expression evaluates to, and the dotted name of each name and
    attribute (`F.relu` → `torch.nn.functional.relu`). `repo.results` gets what its functions give.
    """
    walker = Inference(repo, file, observed)
    walker.block(file.tree.body, {})
    # A method may call one that stands below it: with the results of all, the walk knows more.
    if any(repo.results.get(key, UNKNOWN) != UNKNOWN for key in walker.unknown_callees):
        for model in file.classes.values():
            model.attributes.clear()
        walker = Inference(repo, file, observed)
        walker.block(file.tree.body, {})
    return walker.facts


ABSENT = "object:migrate_agent.tools.harness.common.partial_import.Absent"
"""The kind of what stands for a name whose import failed."""
KEEPING_KIND = frozenset({"to", "cuda", "cpu", "float", "double", "half", "bfloat16", "type", "type_as", "contiguous", "clone", "detach"})
"""Methods of tensors and modules that give the kind that they are called on."""


class _Narrowed(Env):
    """An environment with a closer fact for one name. Bindings go to the outer environment too, as
    in a Python block.
    """

    def __init__(self, outer: Env, name: str, fact: Observed | None) -> None:
        super().__init__(outer)
        super().__setitem__(name, fact)
        self.outer = outer

    def __setitem__(self, name: str, fact: Observed | None) -> None:
        super().__setitem__(name, fact)
        self.outer[name] = fact


class Inference:
    """Walks the statements of a file in order, with the facts of the local names, and notes the
    fact of each expression.

    There is one pass and no fixed point: the body of a loop sees what stands before it. `facts`
    holds the results; `observed` is what the examples showed.
    """

    def __init__(self, repo: Repo, file: FileModel, observed: Mapping[Span, Observed]) -> None:
        self.repo, self.file, self.observed = repo, file, observed
        self.facts = Facts()
        self.classes: list[ClassModel] = []
        self.prefix: list[str] = []
        self.returned: list[list[Result]] = [[]]
        self.unknown_callees: set[Key] = set()

    # -- statements -------------------------------------------------------------------------------------------------
    def block(self, body: Iterable[ast.stmt], env: Env) -> None:
        for statement in body:
            self.statement(statement, env)

    def statement(self, node: ast.stmt, env: Env) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.function(node, env)
            case ast.ClassDef():
                self.class_definition(node, env)
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
                self.bind_iteration(node.target, node.iter, env)
                self.bind_parameters(node, env)
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
                self.block(node.body, self.narrow(node.test, env))
                self.block(node.orelse, env)
            case ast.Return():
                fact = self.expr(node.value, env) if node.value else NONE
                self.returned[-1].append(Result(fact, self.parts(node.value)))
            case ast.Import() | ast.ImportFrom():
                self.facts.absent |= self.absent_names(node)
            case _:
                self.generic(node, env)

    def absent_names(self, node: ast.Import | ast.ImportFrom) -> dict[str, str]:
        """The names that an import should have bound and that stand for its failure, each with its own import."""
        module = f"from {'.' * node.level}{node.module or ''} " if isinstance(node, ast.ImportFrom) else ""
        facts = ((alias, self.observed.get(span_of(alias, self.file.lines))) for alias in node.names)
        absent = [alias for alias, fact in facts if fact is not None and ABSENT in fact.kinds]
        return {alias.asname or alias.name.partition(".")[0]: f"{module}import {alias.name}" for alias in absent}

    def bind_parameters(self, node: ast.For | ast.AsyncFor, env: Env) -> None:
        """Bind the variable of `for name, p in m.named_parameters()` as a parameter."""
        for name in handed_out(node, node.target, node.iter):
            env[name] = Observed(("parameter",))

    def narrow(self, test: ast.expr, env: Env) -> Env:
        """The environment inside `if isinstance(m, nn.Linear):` or `if type(m) is nn.Linear:`, and inside a test that denies that
        a name is a tensor.
        """
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            narrowed = (self._narrowed(one, env) for one in test.values)
            return next((inner for inner in narrowed if inner is not env), env)
        return self._narrowed(test, env)

    def _narrowed(self, call: ast.expr, env: Env) -> Env:
        # In the arm where the name is no tensor, the joined fact "tensor" would be wrong.
        if (name := _denied(call)) and is_tensor(env.get(name)):
            return _Narrowed(env, name, None)
        either = call.values if isinstance(call, ast.BoolOp) and isinstance(call.op, ast.Or) else [call]
        asked = [self._asked_classes(one) for one in either]
        names = {name for name, _ in asked}
        if len(names) > 1 or "" in names:
            return env
        return _Narrowed(env, names.pop(), Observed(tuple(dict.fromkeys(kind for _, kinds in asked for kind in kinds))))

    def _asked_classes(self, test: ast.expr) -> tuple[str, tuple[str, ...]]:
        """The name whose class a test asks for, and the classes, which are all modules; "" for any other test."""
        if (named := name_test(test)) is not None:
            function = self.file.functions.get(".".join(self.prefix))
            owner, kinds = owner_in(named, function), named.layers(self.repo.plain.mentioned, self.repo.plain.own_classes, function)
            return (owner.id, tuple(f"module:{kind}" for kind in sorted(kinds))) if isinstance(owner, ast.Name) and kinds else ("", ())
        asked, of = _asked_class(test)
        if of is None or not isinstance(asked, ast.Name):
            return "", ()
        names = [self.dotted(one) for one in (of.elts if isinstance(of, (ast.Tuple, ast.Set, ast.List)) else [of])]
        if not all(name and self.repo.is_module(name) for name in names):
            return "", ()
        model = {name: self.repo.class_of(name) for name in names}
        return asked.id, tuple(f"module:{m.dotted if (m := model[name]) else name}" for name in names)

    def replaces_import(self, target: ast.expr) -> bool:
        """Whether `name = …` is the fallback for a failed import of a name that the tables know."""
        dotted = self.file.bindings.get(target.id, "") if isinstance(target, ast.Name) and not self.prefix else ""
        return known_to_torch(dotted) or of_fused_package(dotted)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, env: Env) -> None:
        inner = dict(env)
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        used = {} if isinstance(node, ast.Lambda) else parameter_facts(node, self.lookup_observed, self.file.names_torch)
        for argument in every:
            inner[argument.arg] = self.annotation(argument.annotation) or used.get(argument.arg)
            if argument.annotation:
                self.expr(argument.annotation, env)
        for spread, kind in ((arguments.vararg, TUPLE), (arguments.kwarg, DICT)):
            if spread:
                inner[spread.arg] = kind
                if spread.annotation:
                    self.expr(spread.annotation, env)
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
        static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in node.decorator_list)
        if self.classes and every and self.prefix[:-1] and self._method() and not static:
            inner[every[0].arg] = Observed(("self",))
        self.returned.append([])
        self.block(node.body, inner)
        result = result_of(node, self.returned.pop())
        self.repo.results[key_of(self.file, ".".join(self.prefix))] = result
        self.prefix.pop()
        if self.prefix:
            env[node.name] = Observed((f"function:{self.file.file.module}.{'.'.join([*self.prefix, node.name])}",))

    def _method(self) -> bool:
        return ".".join(self.prefix[:-1]) == self.classes[-1].qualname

    def class_definition(self, node: ast.ClassDef, env: Env) -> None:
        for base in (*node.bases, *(k.value for k in node.keywords), *node.decorator_list):
            self.expr(base, env)
        self.prefix.append(node.name)
        model = self.file.classes.get(".".join(self.prefix))
        if model:
            self.classes.append(model)
            # The constructor comes first: the other methods read the attributes that it sets.
            constructor = [s for s in node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"]
            self.block([*constructor, *(s for s in node.body if s not in constructor)], dict(env))
            self.classes.pop()
        else:
            self.block(node.body, dict(env))
        self.prefix.pop()
        # The class itself is found by its dotted name, which knows its methods and bases.
        env.pop(node.name, None)

    # -- expressions ------------------------------------------------------------------------------------------------
    def expr(self, node: ast.expr, env: Env) -> Observed | None:
        inferred = self.infer(node, env)
        return self.note(node, inferred)

    def note(self, node: ast.expr, inferred: Observed | None) -> Observed | None:
        span = span_of(node, self.file.lines)
        # What ran is certain; inference fills the gaps.
        fact = self.observed.get(span) or inferred
        if fact is not None:
            self.facts.observed[span] = fact
        return fact

    def lookup_observed(self, node: ast.expr) -> Observed | None:
        return self.observed.get(span_of(node, self.file.lines))

    def lookup(self, node: ast.expr) -> Observed | None:
        return self.facts.observed.get(span_of(node, self.file.lines))

    def dotted(self, node: ast.expr) -> str:
        return self.facts.dotted.get(span_of(node, self.file.lines), "")

    def name(self, node: ast.expr, dotted: str) -> None:
        self.facts.dotted[span_of(node, self.file.lines)] = public_name(dotted)

    def is_self(self, node: ast.expr, env: Env) -> bool:
        return isinstance(node, ast.Name) and (fact := env.get(node.id)) is not None and fact.kinds == ("self",)

    def infer(self, node: ast.expr, env: Env) -> Observed | None:
        method = getattr(self, f"on_{type(node).__name__}", None)
        if method:
            result: Observed | None = method(node, env)
            return result
        self.generic(node, env)
        return None

    def on_Constant(self, node: ast.Constant, env: Env) -> Observed | None:
        if node.value is None:
            return NONE
        return Observed((type(node.value).__name__,))

    def on_JoinedStr(self, node: ast.JoinedStr, env: Env) -> Observed:
        self.generic(node, env)
        return STR

    def on_Name(self, node: ast.Name, env: Env) -> Observed | None:
        if node.id in env:
            return env[node.id]
        dotted = self.file.bindings.get(node.id) or self.file.own(node.id)
        if dotted:
            self.name(node, dotted)
            return self.named(self.dotted(node))
        return None

    def patched(self, node: ast.Attribute, dotted: str) -> str:
        """The dotted name of the file's own class or function where it has hung it into torch under a name that torch lacks; else `dotted`."""
        own = self.file.patches.get(dotted_text(node) or "", "") if self.file.patches else ""
        return self.file.own(own) if own else dotted

    def named(self, dotted: str) -> Observed | None:
        if dotted in layers():
            return Observed((f"class:{dotted}",))
        if dotted in ops() or dotted.startswith("torch.nn.init."):
            return Observed((f"function:{dotted}",))
        model = self.repo.class_of(dotted)
        if model:
            return Observed((f"class:{model.dotted}",))
        if dotted.startswith("torch.") and dotted.removeprefix("torch.") in DTYPES:
            return DTYPE
        return None

    def observed_attribute(self, model: ClassModel, name: str) -> Observed:
        """What an attribute is that so far was `None` alone, by what the examples showed of all that is assigned to it further below."""
        stores = [node for node in ast.walk(model.node) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
        own = {id(node): node for node in stores if model.own.get(id(node)) == name}
        facts: list[Observed | None] = []
        for node in ast.walk(model.node):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and (target := own.pop(id(node.targets[0]), None)) is not None:
                none = isinstance(node.value, ast.Constant) and node.value.value is None
                facts += [] if _keeps_kind(target, node.value) else [NONE if none else self.lookup_observed(node.value)]
        # What is bound otherwise, by a loop or in a tuple, is not looked for.
        return NONE if own else join(facts) or NONE

    def on_Attribute(self, node: ast.Attribute, env: Env) -> Observed | None:
        base = self.expr(node.value, env)
        if dotted := self.dotted(node.value):
            self.name(node, self.patched(node, f"{dotted}.{node.attr}"))
            return self.named(self.dotted(node))
        if self.is_self(node.value, env) and self.classes:
            fact = self.repo.attribute(self.classes[-1], node.attr) or self.of_a_layer(node.attr)
            return self.observed_attribute(self.classes[-1], node.attr) if fact == NONE else fact
        if is_tensor(base):
            return TENSOR_ATTRIBUTES.get(node.attr)
        if base and len(base.kinds) == 1 and (model := self.repo.class_of(base.kinds[0].removeprefix("module:"))):
            return self.repo.attribute(model, node.attr)
        if node.attr in ("values", "indices") and base and base.kinds == ("tuple",):
            return self.element(node.value, None)
        if base and node.attr in ("weight", "bias") and all(kind.removeprefix("module:") in layers() for kind in base.kinds):
            return Observed(("parameter",))
        return None

    def of_a_layer(self, attribute: str) -> Observed | None:
        """The fact of `self.weight` or `self.bias` in a class that derives from a torch layer and
        does not assign it.
        """
        bases = [name for model in self.repo.ancestors(self.classes[-1]) for name in self.repo.bases(model)]
        return Observed(("parameter",)) if attribute in ("weight", "bias") and any(name in layers() for name in bases) else None

    def on_Call(self, node: ast.Call, env: Env) -> Observed | None:
        callee = self.expr(node.func, env)
        for argument in node.args:
            self.expr(argument, env)
        for keyword in node.keywords:
            self.expr(keyword.value, env)
        self.name_tensor_type(node.func, env)
        dotted = self.dotted(node.func)
        if dotted in ops():
            return Observed((ops()[dotted].returns,)) if ops()[dotted].returns else None
        if dotted in layers() or dotted in MODULE_BASES:
            return Observed((f"module:{dotted}",))
        if dotted == "torch.nn.Parameter" or dotted == "torch.nn.parameter.Parameter":
            return Observed(("parameter",))
        if callee and len(callee.kinds) == 1:
            kind, _, name = callee.kinds[0].partition(":")
            if kind == "class" and name:
                return Observed((f"module:{name}",)) if self.repo.is_module(name) else Observed((f"object:{name}",))
            if kind == "module" and name in layers() and not _returns_tuple(name):
                return TENSOR
        if (
            isinstance(node.func, ast.Name)
            and node.func.id == "getattr"
            and len(node.args) == 2
            and not isinstance(node.args[1], ast.Constant)
        ):
            return self.looked_up(node)
        if isinstance(node.func, ast.Name) and node.func.id in BUILTIN_KINDS and node.func.id not in env:
            return BUILTIN_KINDS[node.func.id]
        if dotted.startswith("einops."):
            return TENSOR
        if (result := self.result(node)).fact is not None:
            return result.fact
        if isinstance(node.func, ast.Attribute) and not dotted:
            return self.method(node.func, env)
        return None

    def name_tensor_type(self, called: ast.expr, env: Env) -> None:
        """Note of a name that is called and stands for a type of tensors which type that is."""
        own = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self"
        if self.dotted(called) or not (own or isinstance(called, ast.Name)):
            return
        paths = (".".join(self.prefix[:end]) for end in range(len(self.prefix), 0, -1))
        functions = [self.file.functions[path] for path in paths if path in self.file.functions]
        holders: list[ast.AST] = [self.classes[-1].node] if own and self.classes else [*functions, self.file.tree]

        def kind(value: ast.expr) -> str:
            return kind_of(value, self.dotted, lambda asked: is_tensor(self.expr(asked, env)), tuple(LEGACY_TYPES))

        if tensor_type := type_that_stands_behind(called, holders, kind):
            self.name(called, tensor_type)

    def looked_up(self, call: ast.Call) -> Observed | None:
        """The layers that a computed name can stand for by its text: `getattr(nn, f"Conv{rank}d")`."""
        pattern = pattern_of_name(self.file, span_of(call, self.file.lines)) if self.dotted(call.args[0]) == "torch.nn" else None
        names = nameable("torch.nn", pattern) if pattern is not None else ()
        return Observed(tuple(f"class:torch.nn.{name}" for name in sorted(names))) if names else None

    def result(self, call: ast.Call) -> Result:
        """What a call of functions of the repository gives, as far as they are known already."""
        keys = self.callees(call)
        self.unknown_callees |= {key for key in keys if self.repo.results.get(key, UNKNOWN) == UNKNOWN}
        return joined(self.repo.results.get(key, UNKNOWN) for key in keys) if keys else UNKNOWN

    def callees(self, call: ast.Call) -> list[Key]:
        """The functions of the repository that a call may run; none where it may run others."""
        func = call.func
        receiver = self.lookup(func.value) if isinstance(func, ast.Attribute) else None
        if isinstance(func, ast.Attribute) and receiver and receiver.kinds == ("self",) and self.classes:
            # What the class assigns to the name goes before its methods.
            owner = None if self.repo.attribute(self.classes[-1], func.attr) else self.classes[-1]
            return methods_called(self.repo, owner, func.attr) if owner else []
        callee = self.lookup(func)
        kinds = callee.kinds if callee else ()
        if kinds == ("self",) and self.classes:
            return methods_called(self.repo, self.classes[-1], "forward")
        owners = [self.repo.class_of(kind.removeprefix("module:")) if kind.startswith("module:") else None for kind in kinds]
        if owners and all(owners):
            return [key for owner in owners if owner for key in methods_called(self.repo, owner, "forward")]
        dotted = self.dotted(func) or (kinds[0].removeprefix("function:") if len(kinds) == 1 else "")
        definition = self.repo.resolve(dotted) if dotted else None
        return [key_of(*definition)] if definition and definition[1] in definition[0].functions else []

    def parts(self, node: ast.expr | None) -> tuple[Observed | None, ...]:
        """The facts of the values that a tuple is written out of, or that a call of the repository gives."""
        if isinstance(node, ast.Tuple) and not any(isinstance(one, ast.Starred) for one in node.elts):
            return tuple(map(self.lookup, node.elts))
        return self.result(node).parts if isinstance(node, ast.Call) else ()

    def method(self, func: ast.Attribute, env: Env) -> Observed | None:
        receiver = self.lookup(func.value)
        name = func.attr[:-1] if func.attr.endswith("_") else func.attr
        row = methods().get(name) or methods().get(func.attr)
        only = tensor_only(func.attr) and func.attr not in self.repo.method_names
        if row and (is_tensor(receiver) or proves_tensor(receiver, func.attr) or (receiver is None and only and self.file.names_torch)):
            # The method's name has proved the receiver to be a tensor: later reads may use that.
            if not is_tensor(receiver):
                self.note(func.value, TENSOR)
            return Observed((row.returns,)) if row.returns else None
        return None

    def on_BinOp(self, node: ast.BinOp, env: Env) -> Observed | None:
        return arithmetic(self.expr(node.left, env), self.expr(node.right, env), isinstance(node.op, ast.Div))

    def on_UnaryOp(self, node: ast.UnaryOp, env: Env) -> Observed | None:
        operand = self.expr(node.operand, env)
        return BOOL if isinstance(node.op, ast.Not) else operand

    def on_Compare(self, node: ast.Compare, env: Env) -> Observed | None:
        sides = [self.expr(side, env) for side in (node.left, *node.comparators)]
        if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
            return BOOL
        if any(is_tensor(side) for side in sides):
            return Observed(("tensor",), (), ("bool",))
        return BOOL if all(sides) else None

    def on_BoolOp(self, node: ast.BoolOp, env: Env) -> Observed | None:
        return join([self.expr(value, env) for value in node.values])

    def on_IfExp(self, node: ast.IfExp, env: Env) -> Observed | None:
        self.expr(node.test, env)
        return join((self.expr(node.body, env), self.expr(node.orelse, env)))

    def on_Subscript(self, node: ast.Subscript, env: Env) -> Observed | None:
        base = self.expr(node.value, env)
        index = self.expr(node.slice, env)
        if is_tensor(base):
            return Observed(("tensor",), (), base.dtypes if base else ())
        if base and base.kinds == ("size",):
            return SIZE if isinstance(node.slice, ast.Slice) else INT if index is None or index.kinds == ("int",) else None
        # `torch.topk(x, 3)[0]`; a slice of a tuple is a tuple.
        if base and base.kinds == ("tuple",) and isinstance(node.slice, (ast.Constant, ast.UnaryOp)):
            place, parts = literal_integer(node.slice), self.parts(node.value)
            return parts[place] if place is not None and -len(parts) <= place < len(parts) else self.element(node.value, None)
        return None

    def on_Tuple(self, node: ast.Tuple, env: Env) -> Observed:
        self.generic(node, env)
        return TUPLE

    def on_List(self, node: ast.List, env: Env) -> Observed:
        self.generic(node, env)
        return LIST

    def on_Dict(self, node: ast.Dict, env: Env) -> Observed:
        self.generic(node, env)
        return DICT

    def on_Lambda(self, node: ast.Lambda, env: Env) -> Observed:
        self.function(node, env)
        return Observed(("function:<lambda>",))

    def on_NamedExpr(self, node: ast.NamedExpr, env: Env) -> Observed | None:
        fact = self.expr(node.value, env)
        env[node.target.id] = fact
        return fact

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, env: Env) -> Env:
        inner = dict(env)
        for generator in node.generators:
            self.expr(generator.iter, inner)
            self.bind_iteration(generator.target, generator.iter, inner)
            for condition in generator.ifs:
                self.expr(condition, inner)
        return inner

    def on_ListComp(self, node: ast.ListComp, env: Env) -> Observed:
        self.expr(node.elt, self._comprehension(node, env))
        return LIST

    def on_SetComp(self, node: ast.SetComp, env: Env) -> Observed:
        self.expr(node.elt, self._comprehension(node, env))
        return Observed(("set",))

    def on_GeneratorExp(self, node: ast.GeneratorExp, env: Env) -> Observed:
        self.expr(node.elt, self._comprehension(node, env))
        return Observed(("generator",))

    def on_DictComp(self, node: ast.DictComp, env: Env) -> Observed:
        inner = self._comprehension(node, env)
        self.expr(node.key, inner)
        self.expr(node.value, inner)
        return DICT

    def on_Starred(self, node: ast.Starred, env: Env) -> Observed | None:
        return self.expr(node.value, env)

    def generic(self, node: ast.AST, env: Env) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self.statement(child, env)
            elif isinstance(child, ast.expr):
                self.expr(child, env)
            else:
                self.generic(child, env)

    def bind(self, target: ast.expr, fact: Observed | None, value: ast.expr | None, env: Env) -> None:
        # The name stands for its import; a local fact would hide that.
        if isinstance(target, ast.Name) and target.id in self.file.runtime_imports:
            return
        if isinstance(target, ast.Name):
            env[target.id] = fact
            self.note(target, fact)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target, fact, value, env)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, LIST, None, env)
        else:
            self.expr(target, env)
            if isinstance(target, ast.Attribute) and self.is_self(target.value, env) and self.classes and not _keeps_kind(target, value):
                attributes = self.classes[-1].attributes
                # The examples took one arm, but the constructor may take the other.
                if fact and _may_be_none(value):
                    fact = Observed(tuple(dict.fromkeys((*fact.kinds, "none"))), fact.shapes, fact.dtypes)
                attributes[target.attr] = fact if target.attr not in attributes else join((attributes[target.attr], fact))

    def unpack(self, target: ast.Tuple | ast.List, fact: Observed | None, value: ast.expr | None, env: Env) -> None:
        values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        if self.unpack_starred(target, values, env):
            return
        parts = self.parts(value)
        if len(parts) == len(target.elts) and not values and not any(isinstance(one, ast.Starred) for one in target.elts):
            for element, part in zip(target.elts, parts, strict=True):
                self.bind(element, part, None, env)
            return
        aligned = len(values) == len(target.elts) and not any(isinstance(e, ast.Starred) for e in (*values, *target.elts))
        for i, element in enumerate(target.elts):
            if aligned:
                self.bind(element, self.lookup(values[i]), values[i], env)
            else:
                self.bind(element, self.element(value, fact), None, env)

    def unpack_starred(self, target: ast.Tuple | ast.List, values: list[ast.expr], env: Env) -> bool:
        """Bind the targets of `b, n, device = *x.shape, x.device`. False where not exactly one
        value is spread.
        """
        stars = [i for i, value in enumerate(values) if isinstance(value, ast.Starred)]
        extra = len(target.elts) - len(values)
        if len(stars) != 1 or extra < -1 or any(isinstance(e, ast.Starred) for e in target.elts):
            return False
        at = stars[0]
        spread = values[at]
        assert isinstance(spread, ast.Starred)
        element = self.element(spread.value, self.lookup(spread.value))
        for i, one in enumerate(target.elts):
            if at <= i <= at + extra:
                self.bind(one, element, None, env)
            else:
                value = values[i if i < at else i - extra]
                self.bind(one, self.lookup(value), value, env)
        return True

    def element(self, node: ast.expr | None, fact: Observed | None) -> Observed | None:
        """The fact of the elements that iterating or unpacking an expression gives."""
        if is_tensor(fact):
            return TENSOR
        if fact and fact.kinds == ("size",):
            return INT
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id == "range":
                return INT
            attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            dotted = self.dotted(node.func)
            if attribute in TENSOR_SEQUENCES or (dotted.startswith("torch.") and dotted.rpartition(".")[2] in TENSOR_SEQUENCES):
                receiver = self.lookup(node.func.value) if isinstance(node.func, ast.Attribute) else None
                if is_tensor(receiver) or dotted.startswith("torch."):
                    return TENSOR
        return None

    def bind_iteration(self, target: ast.expr, source: ast.expr, env: Env) -> None:
        """Bind the target of a loop over `source`; for `zip` and `enumerate`, each part of the
        target by itself.
        """
        name = source.func.id if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id not in env else ""
        parts = source.args if name in ("zip", "enumerate") and isinstance(source, ast.Call) else []
        targets = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
        if name == "enumerate" and parts and len(targets) == 2:
            self.bind(targets[0], INT, None, env)
            targets, parts = targets[1:], parts[:1]
        if parts and len(parts) == len(targets) and not any(isinstance(part, ast.Starred) for part in (*parts, *targets)):
            for one, part in zip(targets, parts, strict=True):
                self.bind_iteration(one, part, env)
        else:
            self.bind(target, self.element(source, self.lookup(source)), None, env)

    def annotation(self, node: ast.expr | None) -> Observed | None:
        """The fact that an annotation states; `Optional[Tensor]` and `Tensor | None` count as tensor."""
        if node is None:
            return None
        text = ast.unparse(node).strip("'\"")
        for word, kind in ANNOTATIONS.items():
            if text in (word, f"Optional[{word}]", f"typing.Optional[{word}]", f"{word} | None"):
                return kind
        return None


def _keeps_kind(target: ast.Attribute, value: ast.expr | None) -> bool:
    """Whether an attribute is assigned what a method makes of it that gives the same kind: `self.pe = self.pe.to(x.dtype)` tells nothing of it."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Attribute(value=owner, attr=name), attr=method)):
            same = name == target.attr and ast.dump(owner) == ast.dump(target.value)
            return same and method in KEEPING_KIND
    return False


def _may_be_none(value: ast.expr | None) -> bool:
    """Whether one arm of a conditional expression is `None`, whichever arm the examples took."""
    return isinstance(value, ast.IfExp) and any(isinstance(arm, ast.Constant) and arm.value is None for arm in (value.body, value.orelse))


def _returns_tuple(layer: str) -> bool:
    return layer.rpartition(".")[2] in {"MultiheadAttention", "RNN", "LSTM", "GRU", "LSTMCell", "Sequential", "ModuleList", "ModuleDict"}


def arithmetic(first: Observed | None, second: Observed | None, division: bool = False) -> Observed | None:
    """The fact of the result of a binary operator; `division` is true division."""
    if is_tensor(first) or is_tensor(second):
        return TENSOR
    if first is None or second is None:
        return None
    kinds = set(first.kinds) | set(second.kinds)
    if kinds <= {"int", "bool"}:
        return FLOAT if division else INT
    if kinds <= {"int", "float", "bool"}:
        return FLOAT
    return first if first.kinds == second.kinds and len(first.kinds) == 1 else None


def _asked_class(test: ast.expr) -> tuple[ast.expr | None, ast.expr | None]:
    """The value and the classes of `isinstance(value, classes)`, `type(value) is class` and `type(value) in classes`; None for any other test."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[asked, of]):
            return asked, of
        case ast.Compare(left=ast.Call(func=ast.Name(id="type"), args=[asked]), ops=[ast.Eq() | ast.Is() | ast.In()], comparators=[of]):
            return asked, of
    return None, None


def _denied(test: ast.expr) -> str:
    """The name in `not isinstance(name, …)` or `not torch.is_tensor(name)`; "" for any other test."""
    call = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
    if not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], ast.Name):
        return ""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return call.args[0].id if function in ("isinstance", "is_tensor") else ""
