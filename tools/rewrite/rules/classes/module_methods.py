"""Methods that `nn.Module` offers and `nnx.Module` does not: walking, applying, moving, switching modes."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import libcst as cst

from migrate_agent.tools.rewrite.analysis.randomness import overrides
from migrate_agent.tools.rewrite.rules.apply_tables import keyword, tidy
from migrate_agent.tools.rewrite.rules.calls.torch_calls import HOOKS
from migrate_agent.tools.rewrite.rules.classes.train_overrides import train_override
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.templates import wrap

WALKERS: Mapping[str, str] = {
    name: f"vendored.{name}({{module}})"
    for name in ("modules", "named_modules", "children", "named_children", "parameters", "named_parameters", "buffers", "named_buffers")
}
DROPPED = frozenset({"to", "cuda", "cpu", "share_memory", "requires_grad_", "xpu", "to_empty", "flatten_parameters"})
"""Methods that give the module itself, or nothing; in JAX there is nothing to do."""
STATE_HOOKS = frozenset(
    """register_state_dict_pre_hook register_state_dict_post_hook _register_state_dict_hook _register_load_state_dict_pre_hook
    register_load_state_dict_pre_hook register_load_state_dict_post_hook""".split()
)
"""Methods that note what runs around torch's own reading and writing of checkpoints."""


class ReplaceModuleMethods(Rule):
    """Replace methods of `nn.Module`: `self.modules()` → `modules(self)`, `m.to(device)` → `m`, `m.train(mode)` → `m.train() if mode else m.eval()`.

    `self.apply(f)` → a loop, inner modules first, so that what an outer one sets in an inner one stays.
    In plain style it is NNX's own, and parameters that are only counted, or asked for their dtype, come from the state.
    `copy.deepcopy(m)` → `copied(m)`, so that the copies do not all draw the same random numbers. Hooks around calls run where they hold
    no module or array of their own; those around checkpoints are left out, with a note. Declines
    where the repository's class defines the method; a hole for those without a counterpart (`m.half()`).
    """

    KEEP = (
        "class Plain:\n    def f(self):\n        return self.modules()\n",
        "import copy\n\ndef f(options: dict):\n    return copy.deepcopy(options)\n",
    )
    CHANGE = (
        (
            "import copy\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.one = nn.Dropout()\n        self.two = copy.deepcopy(self.one)\n",
            "import copy\n\nclass M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.one = nnx.Dropout(0.5, rngs=rngs)\n"
            "        self.two = copied(self.one)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.apply(self._init)\n\n"
            "    def _init(self, m):\n        pass\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        for module in inner_first(self):\n            self._init(module)\n\n"
            "    def _init(self, m):\n        pass\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.a = nn.Linear(d, d)\n"
            "        self.b = nn.Linear(d, d)\n        self.b.load_state_dict(self.a.state_dict())\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.a = Linear(d, d, rngs=rngs)\n"
            "        self.b = Linear(d, d, rngs=rngs)\n        copy_state(self.b, self.a)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def to(self, device):\n        super().to(device)\n        self.device = device\n"
            "        return self\n\n    def train(self, mode=True):\n        super().train(mode)\n        return self\n",
            "class M(OwnTrain):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n    def to(self, device):\n"
            "        self.device = device\n        return self\n\n    def train(self, mode=True):\n"
            "        super().train(mode)\n        return self\n",
        ),
        (
            "from torch import nn\n\ndef double(module, inputs, output):\n    return output * 2\n\nclass M(nn.Module):\n"
            "    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(2, 2)\n        self.a.register_forward_hook(double)\n",
            "def double(module, inputs, output):\n    return output * 2\n\nclass M(nnx.Module):\n"
            "    def __init__(self, *, rngs: nnx.Rngs):\n        self.a = Linear(2, 2, rngs=rngs)\n        register_forward_hook(self.a, double)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, hook):\n        super().__init__()\n        self.d = 1\n"
            "        self._register_load_state_dict_pre_hook(hook)\n",
            "class M(nnx.Module):\n    def __init__(self, hook, *, rngs: nnx.Rngs):\n        self.d = 1\n",
        ),
        (
            "from torch import nn\n\ndef start(m):\n    if isinstance(m, nn.Linear):\n        nn.init.normal_(m.weight)\n\nclass M(nn.Module):\n"
            "    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(2, 2)\n        self.reset()\n\n"
            "    def reset(self):\n        self.apply(start)\n",
            "def start(m, *, rngs: nnx.Rngs):\n    if isinstance(m, nnx.Linear):\n        m.weight = init_normal(rngs(), m.weight)\n\n\n"
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.a = Linear(2, 2, rngs=rngs)\n"
            "        self.reset(rngs=rngs)\n\n    def reset(self, *, rngs: nnx.Rngs):\n        for module in inner_first(self):\n"
            "            start(module, rngs=rngs)\n",
        ),
        (
            "from torch import nn\n\ndef start(modules):\n    for m in modules():\n        print(m)\n\nclass M(nn.Module):\n"
            "    def __init__(self):\n        super().__init__()\n        start(self.modules)\n",
            "def start(modules):\n    for m in modules():\n        print(m)\n\n\nclass M(nnx.Module):\n"
            "    def __init__(self, *, rngs: nnx.Rngs):\n        start(functools.partial(modules, self))\n",
        ),
    )

    PLAIN = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.a = nn.Linear(d, d)\n\n    def forward(self, n):\n        return torch.zeros(n, dtype=next(self.parameters()).dtype)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.a = nnx.Linear(d, d, kernel_init=fan_in_kernel, bias_init=fan_in_bias(d), rngs=rngs)\n\n"
            "    def __call__(self, n):\n        return jnp.zeros(n, dtype=jax.tree.leaves(nnx.state(self, nnx.Param))[0].dtype)\n",
        ),
    )

    def leave_Call(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        func, new = original.func, updated.func
        if self.context.dotted(func) == "copy.deepcopy" and len(original.args) == 1 and self._is_module(original.args[0].value):
            return self.context.build("vendored.copied({module})", module=updated.args[0].value)
        if not isinstance(func, cst.Attribute) or not isinstance(new, cst.Attribute):
            return None
        name = func.attr.value
        if self._is_torchs_super(func.value, name) and name in DROPPED:
            return cst.Name(self.context.self_name())
        if not self._is_module(func.value) and not (
            self._is_torchs_super(func.value, name) and name == "train" and not self._has_own_train()
        ):
            return None
        # Python finds the repository's own method first.
        if self._is_defined_in_repository(func.value, name):
            return None
        if name == "parameters" and not updated.args and (self._counts_elements(original) or self._gives_dtype(original)):
            return self.context.build("jax.tree.leaves(nnx.state({module}, nnx.Param))", module=new.value)
        if name in WALKERS and not updated.args:
            return self.context.build(WALKERS[name], module=new.value)
        if name in DROPPED:
            return new.value
        if name == "train" and updated.args:
            return self._train_call(updated, new)
        if name == "load_state_dict" and (source := self._loaded(original, updated)) is not None:
            return self.context.build("vendored.copy_state({target}, {source})", target=new.value, source=source)
        if name == "state_dict" and self._is_loaded():
            return None
        if name in ("register_forward_pre_hook", "register_forward_hook") and self._is_static_hook(original):
            return self.context.build(f"vendored.{name}({{module}}, {{hook}})", module=new.value, hook=updated.args[0].value)
        if name in ("half", "float", "double", "bfloat16", "state_dict", "load_state_dict", "zero_grad", "type", *HOOKS):
            self.context.hole(original, f"nn.Module.{name} has no direct counterpart in NNX", "module-method")
        return None

    def _is_static_hook(self, call: cst.Call) -> bool:
        """Whether a hook, whose handle nobody keeps, is a function of the file or an object of a plain class: what it needs is in the module it is given."""
        if len(call.args) != 1 or call.args[0].keyword is not None or not isinstance(self.context.parent(), cst.Expr):
            return False
        hook = call.args[0].value
        if isinstance(hook, cst.Name) and hook.value in self.context.file.functions:
            return True
        fact = self.context.observed(hook)
        classes = [self.context.repo.class_of(kind.removeprefix("object:")) for kind in fact.kinds] if fact else []
        return bool(classes) and all(model is not None for model in classes)

    def _counts_elements(self, call: cst.Call) -> bool:
        """Whether a mirror in plain style may take all parameters of a module from its state: they are all trained, and only counted."""
        if not self.context.repo.is_plain or self.context.repo.freezes:
            return False
        match [self.context.parent(level) for level in range(1, 5)]:
            case [
                cst.CompFor(iter=iterated, target=cst.Name(value=name), ifs=[], inner_for_in=None),
                cst.GeneratorExp(elt=cst.Call(func=cst.Attribute(value=cst.Name(value=counted), attr=cst.Name("numel")))),
                cst.Arg(),
                cst.Call(func=cst.Name("sum")),
            ]:
                return iterated is call and name == counted
        return False

    def _gives_dtype(self, call: cst.Call) -> bool:
        """Whether the parameters are only asked for the dtype of the first: `next(self.parameters()).dtype`."""
        if not self.context.repo.is_plain or self.context.repo.freezes:
            return False
        match [self.context.parent(level) for level in range(1, 4)]:
            case [cst.Arg(), cst.Call(func=cst.Name("next"), args=[cst.Arg(value=asked)]), cst.Attribute(attr=cst.Name("dtype"))]:
                return asked is call
        return False

    def _handed_on(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        """A method that is handed on: `init_weights(self.modules)`."""
        name, model = original.attr.value, self.context.cls
        if name not in WALKERS or not isinstance(self.context.parent(), (cst.Arg, cst.Element, cst.Assign, cst.Return)):
            return None
        if not self._is_module(original.value) or self._is_defined_in_repository(original.value, name):
            return None
        if model is not None and any(
            _is_store(node) and node.attr == name for node in ast.walk(model.node) if isinstance(node, ast.Attribute)
        ):
            return None
        return self.context.build(f"functools.partial(vendored.{name}, {{module}})", module=updated.value)

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        match original.value, updated.value:
            case (
                cst.Call(func=cst.Name("next"), args=[cst.Arg(value=cst.Call(func=cst.Attribute(attr=cst.Name("parameters"))))]),
                cst.Call(args=[cst.Arg(value=cst.Call(func=cst.Attribute(attr=cst.Name("leaves"))) as leaves)]),
            ):
                return updated.with_changes(value=self.context.build("{leaves}[0]", leaves=leaves))
        return self._handed_on(original, updated)

    def _is_loaded(self) -> bool:
        """Whether the state dictionary at hand is all that another module loads."""
        parent, call = self.context.parent(), self.context.parent(2)
        return isinstance(parent, cst.Arg) and isinstance(call, cst.Call) and self._loaded(call, call) is not None

    def _loaded(self, call: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        """The module whose state another one takes: `b` of `a.load_state_dict(b.state_dict())`."""
        match call, updated.args:
            case (
                cst.Call(
                    func=cst.Attribute(value=target, attr=cst.Name("load_state_dict")),
                    args=[cst.Arg(value=cst.Call(func=cst.Attribute(value=source, attr=cst.Name("state_dict")), args=[]))],
                ),
                [cst.Arg(value=cst.Call(func=cst.Attribute(value=new)))],
            ) if self._is_module(target) and self._is_module(source) and not self._is_defined_in_repository(source, "state_dict"):
                return new
        return None

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.RemovalSentinel | None:
        statement = original.body[0] if len(original.body) == 1 else None
        if not isinstance(statement, cst.Expr) or not isinstance(statement.value, cst.Call):
            return None
        call = statement.value
        if (
            isinstance(call.func, cst.Attribute)
            and call.func.attr.value in DROPPED
            and self._is_torchs_super(call.func.value, call.func.attr.value)
        ):
            return cst.RemoveFromParent()
        if (
            not isinstance(call.func, cst.Attribute)
            or not self._is_module(call.func.value)
            or self._is_defined_in_repository(call.func.value, call.func.attr.value)
        ):
            return None
        # `m.to(device)` as a statement has become `m`, which does nothing.
        if (
            call.func.attr.value in DROPPED
            and isinstance(updated.body[0], cst.Expr)
            and isinstance(updated.body[0].value, cst.Attribute | cst.Name)
        ):
            return cst.RemoveFromParent()
        if call.func.attr.value in STATE_HOOKS:
            at = f"{self.context.file.file.path}:{self.context.span(original).line}"
            self.context.notes.append(f"{at}: {call.func.attr.value} is left out: it runs where torch reads or writes a checkpoint")
            return cst.RemoveFromParent()
        if call.func.attr.value == "apply" and len(call.args) == 1:
            return self._apply_loop(call, updated)
        return None

    def _apply_loop(self, call: cst.Call, updated: cst.SimpleStatementLine) -> cst.BaseStatement:
        expression = updated.body[0]
        assert (
            isinstance(expression, cst.Expr) and isinstance(expression.value, cst.Call) and isinstance(expression.value.func, cst.Attribute)
        )
        function = wrap(expression.value.args[0].value, None)
        arguments = [cst.Arg(cst.Name("module"))]
        if self._takes_rngs(call.args[0].value) and (rngs := self.context.rngs()) is not None:
            arguments.append(keyword("rngs", rngs))
        inner = cst.SimpleStatementLine([cst.Expr(cst.Call(function, tidy(arguments)))])
        # NNX goes through the modules inside first too, those of one module by their names.
        plain, target = self.context.repo.is_plain, cst.Name("module")
        template = "nnx.iter_modules({module})" if plain else "vendored.inner_first({module})"
        pair = cst.Tuple([cst.Element(cst.Name("_")), cst.Element(target)], lpar=[], rpar=[])
        walk = self.context.build(template, module=expression.value.func.value)
        return cst.For(pair if plain else target, walk, cst.IndentedBlock([inner]), leading_lines=updated.leading_lines)

    def _takes_rngs(self, function: cst.BaseExpression) -> bool:
        context = self.context
        if isinstance(function, cst.Attribute) and context.is_self(function.value) and context.cls:
            for model in overrides(context.repo, context.cls, function.attr.value):
                return (model.file.file.path, f"{model.qualname}.{function.attr.value}") in context.randomness.parameter
        if dotted := context.dotted(function):
            target = context.repo.resolve(dotted)
            return bool(target) and (target[0].file.path, target[1]) in context.randomness.parameter  # type: ignore[index]
        return False

    def _train_call(self, updated: cst.Call, new: cst.Attribute) -> cst.BaseExpression:
        mode = updated.args[0].value
        if isinstance(mode, cst.Name) and mode.value in ("True", "False"):
            return cst.Call(new.with_changes(attr=cst.Name("train" if mode.value == "True" else "eval")))
        return self.context.parenthesise(self.context.build("{m}.train() if {mode} else {m}.eval()", m=new.value, mode=mode))

    def _is_torchs_super(self, node: cst.BaseExpression, name: str) -> bool:
        """Whether this is `super()` in a module class, and the method of this name there is that of `nn.Module` itself."""
        cls, repo = self.context.cls, self.context.repo
        if not (isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "super"):
            return False
        return bool(cls) and repo.is_module_class(cls) and not any(name in m.methods for m in repo.ancestors(cls) if m is not cls)  # type: ignore[arg-type]

    def _has_own_train(self) -> bool:
        """Whether the class derives from `OwnTrain`, whose `train` takes a mode."""
        return self.context.cls is not None and train_override(self.context.repo, self.context.cls) is not None

    def _is_module(self, node: cst.BaseExpression) -> bool:
        context = self.context
        if context.is_self(node):
            return bool(context.cls and (context.repo.is_module_class(context.cls) or context.repo.is_mixin(context.cls)))
        fact = context.observed(node)
        return bool(fact) and all(kind.startswith("module:") for kind in fact.kinds)  # type: ignore[union-attr]

    def _is_defined_in_repository(self, node: cst.BaseExpression, name: str) -> bool:
        """Whether the repository's own class defines a method of this name."""
        context = self.context
        if context.is_self(node) and context.cls:
            return any(name in model.methods for model in context.repo.ancestors(context.cls))
        fact = context.observed(node)
        models = [context.repo.class_of(kind.removeprefix("module:")) for kind in fact.kinds] if fact else []
        return any(model and name in current.methods for model in models if model for current in context.repo.ancestors(model))


def _is_store(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)
