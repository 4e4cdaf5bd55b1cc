"""`nn.Module` classes become `nnx.Module` classes: constructors take `rngs`, `forward` becomes `__call__`, training mode is NNX's."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.randomness import calls_reset
from migrate_agent.tools.rewrite.analysis.repo import MODULE_BASES, ClassModel, FunctionNode, dotted_name
from migrate_agent.tools.rewrite.analysis.self_references import family
from migrate_agent.tools.rewrite.rules.apply_tables import keyword, tidy
from migrate_agent.tools.rewrite.rules.classes.train_overrides import train_override
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.helpers import rngs_of
from migrate_agent.tools.rewrite.tables.registry import layers

STORED = cst.parse_statement("self.rngs = rngs")
RNGS = cst.Param(cst.Name("rngs"), cst.Annotation(cst.parse_expression("nnx.Rngs")))


CONSTANTS = m.SimpleStatementLine([m.Assign([m.AssignTarget(m.Name("__constants__"))]) | m.AnnAssign(m.Name("__constants__"))])
"""What tells the compiler of `torch.jit` which attributes are no state."""


class ConvertModuleClass(Rule):
    """Convert module classes: `class M(nn.Module)` → `class M(nnx.Module)` with `rngs` in its constructor.

    It keeps `self.rngs` and `self.deterministic` where methods need them. What torch's own constructor
    of a layer does, calling an overridden `reset_parameters`, is written out. A dataclass, and a class of attrs,
    gains a field `rngs` instead. Declines for classes that are no modules.
    """

    KEEP = ("class Plain:\n    def __init__(self, x):\n        super().__init__()\n        self.x = x\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.d = d\n\n    def forward(self, x):\n        return x\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.d = d\n\n    def __call__(self, x):\n        return x\n",
        ),
        (
            "from dataclasses import dataclass\nfrom torch import nn\n\n@dataclass(eq=False)\nclass M(nn.Module):\n    d: int\n    k: int = 2\n\n"
            "    def __post_init__(self):\n        super().__init__()\n        self.fc = nn.Linear(self.d, self.k)\n\n"
            "    def forward(self, x):\n        return self.fc(x)\n",
            "from dataclasses import dataclass\n\n@dataclass(eq=False)\nclass M(nnx.Module):\n    d: int\n    k: int = 2\n"
            "    rngs: nnx.Rngs = dataclasses.field(kw_only=True)\n\n"
            "    def __post_init__(self):\n        self.fc = Linear(self.d, self.k, rngs=self.rngs)\n\n"
            "    def __call__(self, x):\n        return self.fc(x)\n",
        ),
        (
            "import attr\nfrom torch import nn\n\n@attr.s(eq=False)\nclass M(nn.Module):\n    d = attr.ib()\n    k: int = attr.ib(default=2)\n\n"
            "    def __attrs_post_init__(self):\n        super().__init__()\n        self.fc = nn.Linear(self.d, self.k)\n\n"
            "    def forward(self, x):\n        return self.fc(x)\n",
            "import attr\n\n@attr.s(eq=False)\nclass M(nnx.Module):\n    d = attr.ib()\n    k: int = attr.ib(default=2)\n"
            "    rngs: nnx.Rngs = attr.ib(kw_only=True)\n\n"
            "    def __attrs_post_init__(self):\n        self.fc = Linear(self.d, self.k, rngs=self.rngs)\n\n"
            "    def __call__(self, x):\n        return self.fc(x)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def forward(self, x):\n        return x if self.training else x * 2\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.deterministic = False\n\n"
            "    def __call__(self, x):\n        return x if not self.deterministic else x * 2\n",
        ),
        (
            "from torch import jit, nn\n\nclass M(jit.ScriptModule):\n    __constants__ = ['d']\n\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.d = d\n\n    @jit.script_method\n    def forward(self, x):\n        return x * self.d\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.d = d\n\n    def __call__(self, x):\n        return x * self.d\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Linear):\n    def __init__(self, d):\n        super().__init__(d, d)\n\n"
            "    def reset_parameters(self):\n        nn.init.normal_(self.weight)\n",
            "class M(Linear):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        super().__init__(d, d, rngs=rngs)\n"
            "        self.reset_parameters(rngs=rngs)\n\n    def reset_parameters(self, *, rngs: nnx.Rngs):\n"
            "        self.weight = init_normal(rngs.params(), self.weight)\n",
        ),
    )

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.ClassDef | None:
        context = self.context
        model = context.cls
        if model is None or not context.repo.is_module_class(model):
            return None
        inserted = self._state_statements(model)
        body = updated.body
        if not isinstance(body, cst.IndentedBlock):
            body = cst.IndentedBlock([cst.SimpleStatementLine(list(body.body))] if isinstance(body, cst.SimpleStatementSuite) else [])
        if "__init__" in model.methods:
            statements = [
                _insert_in_constructor(s, inserted, self._layer_names(model))
                if isinstance(s, cst.FunctionDef) and s.name.value == "__init__"
                else s
                for s in body.body
            ]
        elif (written := written_constructor(model)) and not self._inherits_constructor(model):
            statements = self._with_field(list(body.body), written, [one for one in inserted if not one.deep_equals(STORED)])
        # All modules are constructed with `rngs`, and `nnx.Module` itself takes none.
        elif inserted or not self._inherits_constructor(model):
            statements = _with_constructor(list(body.body), self._constructor(model, inserted))
        else:
            statements = list(body.body)
        return updated.with_changes(body=body.with_changes(body=self._without_constants(statements, updated)))

    def _without_constants(self, statements: Sequence[cst.BaseStatement], node: cst.ClassDef) -> list[cst.BaseStatement]:
        """The statements but what speaks to the compiler of `torch.jit` alone."""
        read = m.findall(node, m.Attribute(value=m.Name("self"), attr=m.Name("__constants__")))
        return [one for one in statements if read or not m.matches(one, CONSTANTS)]

    def _layer_names(self, model: ClassModel) -> list[str]:
        """The names of the helpers that the class derives from."""
        return [layers()[base].vendored or base.rpartition(".")[2] for base in self.context.repo.bases(model) if base in layers()]

    def _state_statements(self, model: ClassModel) -> list[cst.BaseStatement]:
        context = self.context
        above = [m.id for m in context.repo.ancestors(model)][1:]
        lines = []
        # A base that reads the mode sets the flag in its own constructor, and `OwnTrain` has it as a property.
        inherited = any(context.facts_of(identifier).reads_training for identifier in above)
        if context.class_facts.reads_training and not inherited and train_override(context.repo, model) is None:
            lines.append("self.deterministic = False")
        if model.id in context.randomness.stored and not set(above) & context.randomness.stored:
            lines.append("self.rngs = rngs")
        if calls_reset(context.repo, model):
            drawing = (model.file.file.path, f"{model.qualname}.reset_parameters") in context.randomness.parameter
            lines.append(f"self.reset_parameters({'rngs=rngs' if drawing else ''})")
        return [cst.parse_statement(line) for line in lines]

    def _with_field(
        self, body: list[cst.BaseStatement], written: WrittenConstructor, inserted: Sequence[cst.BaseStatement]
    ) -> list[cst.BaseStatement]:
        """The body with a field `rngs`, and with these statements where the class's own code runs after the constructor's."""
        annotation = cst.Annotation(cst.parse_expression("nnx.Rngs"))
        field = cst.AnnAssign(cst.Name("rngs"), annotation, self.context.build(f"{written.field}(kw_only=True)"))
        fields = m.SimpleStatementLine([m.AnnAssign() | m.Assign()])
        last = max((i for i, one in enumerate(body) if m.matches(one, fields)), default=-1)
        after = m.FunctionDef(m.Name(written.after))
        body = [_insert_in_constructor(one, inserted) if m.matches(one, after) else one for one in body]  # type: ignore[arg-type]
        return [*body[: last + 1], cst.SimpleStatementLine([field]), *body[last + 1 :]]

    def _inherits_constructor(self, model: ClassModel) -> bool:
        repo = self.context.repo
        for current in repo.ancestors(model):
            if current is not model and ("__init__" in current.methods or repo.is_module_class(current)):
                return True
            if any(base in layers() for base in repo.bases(current)):
                return True
        return False

    def _constructor(self, model: ClassModel, inserted: Sequence[cst.BaseStatement]) -> cst.FunctionDef:
        body: list[cst.BaseStatement] = list(inserted) or [cst.parse_statement("pass")]
        if self._inherits_constructor(model):
            # The constructor above may take anything.
            source = "def __init__(self, *args, rngs: nnx.Rngs, **kwargs):\n    super().__init__(*args, rngs=rngs, **kwargs)\n"
        else:
            source = "def __init__(self, *, rngs: nnx.Rngs):\n    pass\n"
        function = cst.parse_statement(source)
        assert isinstance(function, cst.FunctionDef) and isinstance(function.body, cst.IndentedBlock)
        start = list(function.body.body) if self._inherits_constructor(model) else []
        return function.with_changes(body=function.body.with_changes(body=[*start, *(body if inserted or not start else [])]))


@dataclass(frozen=True)
class WrittenConstructor:
    """A constructor that a decorator writes: the method that runs after it, and what declares a field."""

    after: str
    field: str


_WRITTEN: Final = {
    "dataclasses.dataclass": WrittenConstructor("__post_init__", "dataclasses.field"),
    **{f"attr.{name}": WrittenConstructor("__attrs_post_init__", "attr.ib") for name in ("s", "attrs", "attributes", "dataclass")},
    **{f"{package}.define": WrittenConstructor("__attrs_post_init__", f"{package}.field") for package in ("attr", "attrs")},
    **{f"{package}.mutable": WrittenConstructor("__attrs_post_init__", f"{package}.field") for package in ("attr", "attrs")},
}


def written_constructor(model: ClassModel) -> WrittenConstructor | None:
    """The constructor that a decorator of the class writes, where the class's own code runs after it; None for every other class."""
    names = [dotted_name(node.func if isinstance(node, ast.Call) else node, model.file) for node in model.node.decorator_list]
    return next((_WRITTEN[name] for name in names if name in _WRITTEN and _WRITTEN[name].after in model.methods), None)


class ConvertMethods(Rule):
    """Convert methods and functions: `forward` → `__call__`; what constructs or draws gains a keyword-only `rngs`.

    `super().__init__()` of `nn.Module` is removed, and so is a `__call__` that only calls torch's own.
    Declines (a hole) for another `__call__` beside a `forward`.
    """

    KEEP = ("class Plain:\n    def forward(self, x):\n        return x\n",)
    CHANGE = (
        (
            "from torch import nn\n\ndef block(d):\n    return nn.Linear(d, d)\n",
            "def block(d, *, rngs: nnx.Rngs):\n    return Linear(d, d, rngs=rngs)\n",
        ),
        (
            "from torch import nn\n\nclass A(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.d = d\n\n\n"
            "class B(A):\n    def __init__(self, d):\n        super(A, self).__init__()\n        self.d = d + 1\n\n\n"
            "class C(B):\n    def __init__(self, d):\n        super(C, self).__init__(d)\n",
            "class A(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.d = d\n\n\n"
            "class B(A):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.d = d + 1\n\n\n"
            "class C(B):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        super(C, self).__init__(d, rngs=rngs)\n",
        ),
        (
            "from torch import nn\n\nclass Typed(nn.Module):\n    def __call__(self, x, *, k=1):\n        return super().__call__(x, k=k)\n\n"
            "    def forward(self, x, *, k=1):\n        return x * k\n\n\n"
            "class Called(nn.Module):\n    def __call__(self, x):\n        return -x\n",
            "class Typed(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n"
            "    def __call__(self, x, *, k=1):\n        return x * k\n\n\n"
            "class Called(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n    def __call__(self, x):\n        return -x\n",
        ),
    )

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | cst.RemovalSentinel | None:
        context = self.context
        changes: dict[str, object] = {}
        # A function inside a method is no method, whatever its name.
        if len(context.functions) == 1:
            if context.cls and context.repo.is_module_class(context.cls) and original.name.value == "forward":
                changes["name"] = cst.Name("__call__")
            elif context.cls and context.repo.is_module_class(context.cls) and original.name.value == "__call__":
                methods = context.cls.methods
                if (
                    passes_on(methods["__call__"])
                    and same_defaults(methods["__call__"], methods.get("forward"))
                    and len(context.cls.node.body) > 1
                ):
                    return cst.RemoveFromParent()
                # Where nobody has a `forward`, nothing else becomes `__call__`.
                if any("forward" in model.methods for model in family(context.repo, context.cls)) or names_forward(original):
                    reason = "a `__call__` of its own: `forward` becomes `__call__` in NNX, so say in `forward` what it does"
                    context.hole(original.name, reason, "module-method")
            if context.function_key in context.randomness.parameter:
                changes["params"] = add_rngs(updated.params)
        return updated.with_changes(**changes) if changes else None

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel | None:
        if len(original.body) == 1 and isinstance(original.body[0], cst.Expr) and self._is_super_init(original.body[0].value):
            call = original.body[0].value
            assert isinstance(call, cst.Call)
            if not call.args and (self._is_plain_module(self._class_above(call)) or self._hides_others(self._class_above(call))):
                return cst.RemoveFromParent()
        return None

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        context = self.context
        if self._is_super_init(original) and context.cls and context.repo.is_module_class(context.cls):
            owner = self._class_above(original)
            if (
                not self._is_plain_module(owner)
                and self._base_takes_rngs(owner)
                and not any(a.keyword and a.keyword.value == "rngs" for a in updated.args)
            ):
                plain = [a for a in updated.args if a.star != "**" and not self._is_layer_option(a)]
                spread = [a for a in updated.args if a.star == "**"]
                return updated.with_changes(args=tidy([*plain, keyword("rngs", cst.Name("rngs")), *spread]))
            return None
        func = original.func
        if isinstance(func, cst.Attribute) and func.attr.value == "forward" and isinstance(updated.func, cst.Attribute):
            if self._is_super(func.value) and context.cls and context.repo.is_module_class(context.cls):
                return updated.with_changes(func=updated.func.with_changes(attr=cst.Name("__call__")))
            if context.is_module(func.value):
                return updated.with_changes(func=updated.func.value)
        return None

    def _is_layer_option(self, argument: cst.Arg) -> bool:
        """`device=` and `dtype=` handed to a torch layer's constructor."""
        context = self.context
        bases = context.repo.bases(context.cls) if context.cls else []
        return argument.keyword is not None and argument.keyword.value in ("device", "dtype") and any(base in layers() for base in bases)

    def _is_super(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "super"

    def _is_super_init(self, node: cst.BaseExpression) -> bool:
        return (
            isinstance(node, cst.Call)
            and isinstance(node.func, cst.Attribute)
            and node.func.attr.value == "__init__"
            and self._is_super(node.func.value)
        )

    def _class_above(self, call: cst.Call) -> ClassModel | None:
        """The class above which `super().__init__()` looks: this one, or X of `super(X, self)`."""
        named = call.func.value.args[:1] if isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Call) else ()
        model = self.context.repo.class_of(self.context.dotted(named[0].value)) if named else None
        return model or self.context.cls

    def _is_plain_module(self, model: ClassModel | None) -> bool:
        """Whether the class derives from `nn.Module` alone."""
        bases = self.context.repo.bases(model) if model else []
        return bool(bases) and all(name in MODULE_BASES for name in bases) and len(bases) == len(model.node.bases)  # type: ignore[union-attr]

    def _hides_others(self, model: ClassModel | None) -> bool:
        """Whether the next class above is `nn.Module`, whose constructor calls none of those behind it: `class M(nn.Module, Mixin)`."""
        repo = self.context.repo
        bases = repo.bases(model) if model else []
        # Below a class of several bases, others may come between.
        single = model is not None and all(len(below.node.bases) == 1 for below in repo.descendants.get(model.id, ()))
        return bool(bases) and bases[0] in MODULE_BASES and single

    def _base_takes_rngs(self, owner: ClassModel | None) -> bool:
        context = self.context
        assert owner
        for model in context.repo.ancestors(owner):
            if model is not owner and context.repo.is_module_class(model):
                return True
            for base in context.repo.bases(model):
                if base in layers():
                    return rngs_of(layers()[base].vendored) == "required"
        return False


def passes_on(function: FunctionNode) -> bool:
    """Whether a `__call__` only calls torch's own with its own arguments, as one that is there for its annotations does."""
    body = [node for node in function.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    match body:
        case [
            ast.Return(
                value=ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__call__"), args=args, keywords=keywords)
            )
        ]:
            arguments = function.args
            positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)][1:]
            positional += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
            named = {argument.arg: argument.arg for argument in arguments.kwonlyargs}
            named |= {"**": arguments.kwarg.arg} if arguments.kwarg else {}
            by_name = {keyword.arg or "**": ast.unparse(keyword.value) for keyword in keywords}
            given = [ast.unparse(argument) for argument in args]
            # Positional arguments may be passed on by their names.
            named |= {name: name for name in positional[len(given) :] if not name.startswith("*")}
            return given == positional[: len(given)] and by_name == named
    return False


def same_defaults(function: FunctionNode, other: FunctionNode | None) -> bool:
    """Whether what a caller leaves out is the same for both functions."""

    def defaults(one: FunctionNode) -> list[str]:
        return [ast.unparse(value) for value in (*one.args.defaults, *one.args.kw_defaults) if value is not None]

    return not defaults(function) or (other is not None and defaults(function) == defaults(other))


def names_forward(function: cst.FunctionDef) -> bool:
    """Whether a function names `forward` or a `__call__` above it."""
    text = cst.Module([]).code_for_node(function.body)
    return ".forward" in text or ".__call__" in text


def add_rngs(params: cst.Parameters) -> cst.Parameters:
    """The parameters with a keyword-only `rngs: nnx.Rngs`."""
    existing = [*params.params, *params.kwonly_params, *params.posonly_params]
    if any(param.name.value == "rngs" for param in existing):
        return params
    star: cst.Param | cst.ParamStar | cst.MaybeSentinel = params.star_arg
    if isinstance(star, cst.MaybeSentinel):
        star = cst.ParamStar()
    return params.with_changes(star_arg=star, kwonly_params=[*params.kwonly_params, RNGS])


def _insert_in_constructor(
    function: cst.FunctionDef, statements: Sequence[cst.BaseStatement], above: Sequence[str] = ()
) -> cst.FunctionDef:
    """Put statements at the start of a constructor, after its docstring and `super().__init__`, or that of a base with one of these names."""
    if not isinstance(function.body, cst.IndentedBlock):
        return function
    body = list(function.body.body)
    index = 0
    for i, statement in enumerate(body):
        code = cst.Module([]).code_for_node(statement).strip()
        if (i == 0 and code[:1] in "\"'rRbB" and isinstance(statement, cst.SimpleStatementLine)) and _is_string(statement):
            index = i + 1
        # The statements use what the base's constructor makes (`self.reset_parameters()`).
        by_name = any(re.search(rf"\b{name}\.__init__\(\s*self\b", code) for name in above)
        if ("super(" in code and "__init__" in code) or by_name:
            index = i + 1
            break
    body[index:index] = statements
    return function.with_changes(body=function.body.with_changes(body=body or [cst.parse_statement("pass")]))


def _is_string(statement: cst.SimpleStatementLine) -> bool:
    first = statement.body[0] if statement.body else None
    return isinstance(first, cst.Expr) and isinstance(first.value, (cst.SimpleString, cst.ConcatenatedString))


def _with_constructor(body: list[cst.BaseStatement], constructor: cst.FunctionDef) -> list[cst.BaseStatement]:
    """Put a constructor before the first method."""
    index = next((i for i, s in enumerate(body) if isinstance(s, cst.FunctionDef)), len(body))
    blank = [cst.EmptyLine(indent=False)]
    constructor = constructor.with_changes(leading_lines=blank if index else [])
    rest = body[index:]
    if rest and isinstance(rest[0], cst.FunctionDef) and not rest[0].leading_lines:
        rest[0] = rest[0].with_changes(leading_lines=blank)
    before = [s for s in body[:index] if not (isinstance(s, cst.SimpleStatementLine) and all(isinstance(x, cst.Pass) for x in s.body))]
    return [*before, constructor, *rest]


class GiveLambdasRngs(Rule):
    """Give lambdas in tables `rngs`: `NORMS = {"gn": lambda c: nn.GroupNorm(2, c), None: nn.Identity}` → `lambda c, *, rngs: …`.

    They are called as the classes beside them are; so is one that a call gets in the place of a class.
    Declines inside functions else, where `rngs` is in scope.
    """

    KEEP = ("TABLE = {'a': lambda c: c + 1}\n",)
    CHANGE = (
        (
            "from torch import nn\n\nNORMS = {\n    'gn': lambda c: nn.GroupNorm(2, c),\n    None: lambda c: None,\n    'id': nn.Identity,\n}\n",
            "NORMS = {\n    'gn': lambda c, *, rngs: GroupNorm(2, c, rngs=rngs),\n    None: lambda c, *, rngs: None,\n    'id': Identity,\n}\n",
        ),
    )

    def leave_Lambda(self, original: cst.Lambda, updated: cst.Lambda) -> cst.Lambda | None:
        if not self.context.lambda_takes_rngs(original):
            return None
        params = updated.params
        # Behind `*args` a parameter is keyword-only already; a bare star beside it would be an error.
        star = params.star_arg if isinstance(params.star_arg, cst.Param) else cst.ParamStar()
        rngs = cst.Param(cst.Name("rngs"))
        return updated.with_changes(params=params.with_changes(star_arg=star, kwonly_params=[*params.kwonly_params, rngs]))
