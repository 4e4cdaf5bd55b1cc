"""`self.training`, the mode of a module, which NNX keeps under another name and the other way round."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.templates import wrap
from migrate_agent.tools.scan.nodes import walk


class ReplaceTrainingFlag(Rule):
    """Replace the mode of a module: `self.training` → `not self.deterministic`; `self.training = x` → `self.deterministic = not x`.

    `deterministic` is the flag that NNX's `.train()` and `.eval()` set. So is the mode of another module of the repository, `module.training`.
    Of a layer, or what may be one, the mode is asked for where it is only set again: `m.train(other.training)` → `m.train(in_training(other))`.
    Declines (a hole) where more is done with it, or another's is set: not every module of NNX has one.
    """

    KEEP = ("class Plain:\n    def f(self):\n        return self.training\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n\n"
            "    def forward(self, x):\n        if not self.training:\n            return x\n        return x + 1\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.deterministic = False\n\n"
            "    def __call__(self, x):\n        if self.deterministic:\n            return x\n        return x + 1\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, on):\n        super().__init__()\n        self.training = True\n\n"
            "    def freeze(self, on, off):\n        self.training = on and not off\n\n    def thaw(self, off):\n        self.training = not off\n",
            "class M(nnx.Module):\n    def __init__(self, on, *, rngs: nnx.Rngs):\n        self.deterministic = False\n"
            "        self.deterministic = False\n\n    def freeze(self, on, off):\n        self.deterministic = not (on and not off)\n\n"
            "    def thaw(self, off):\n        self.deterministic = off\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.drop = nn.Dropout(0.5)\n\n"
            "    def sample(self, x):\n        was = self.drop.training\n        self.drop.eval()\n        y = self.drop(x)\n"
            "        self.drop.train(was)\n        return y\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.drop = nnx.Dropout(0.5, rngs=rngs)\n\n"
            "    def sample(self, x):\n        was = in_training(self.drop)\n        self.drop.eval()\n        y = self.drop(x)\n"
            "        self.drop.train() if was else self.drop.eval()\n        return y\n",
        ),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        context = self.context
        if not self._is_training_flag(original):
            fact = context.observed(original.value) if original.attr.value == "training" else None
            if fact is None or not any(kind.startswith("module:") for kind in fact.kinds):
                return None
            if not self.context.is_target(original) and self._only_sets_modes() and not all(map(self._has_mode, fact.kinds)):
                return context.build("vendored.in_training({module})", module=updated.value)
            if not all(map(self._has_mode, fact.kinds)) or isinstance(context.parent(), cst.AssignTarget | cst.AugAssign):
                context.hole(original, "the mode of another module: give it as an argument, or ask the layer that has one", "module-method")
                return None
        flag = updated.with_changes(attr=cst.Name("deterministic"))
        if isinstance(context.parent(), cst.AssignTarget) and isinstance(context.parent(2), cst.Assign):
            return flag  # what is set is turned round: see `leave_Assign`
        return context.parenthesise(cst.UnaryOperation(cst.Not(), flag))

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        is_flag = [isinstance(target.target, cst.Attribute) and self._is_training_flag(target.target) for target in original.targets]
        if not any(is_flag):
            return None
        if not all(is_flag):
            self.context.hole(original, "several targets, one of them the mode of the module", "module-method")
            return None
        match updated.value:
            case cst.Name(value="True" | "False" as value):
                return updated.with_changes(value=cst.Name("False" if value == "True" else "True"))
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                return updated.with_changes(value=inner)
        turned = cst.UnaryOperation(cst.Not(), cst.Name("x"))
        return updated.with_changes(value=turned.with_changes(expression=wrap(updated.value, turned)))

    def _only_sets_modes(self) -> bool:
        """Whether the mode being read is for nothing but to be set again: `m.train(other.training)`, `was = m.training`, `m.train(was)`."""
        context, parent = self.context, self.context.parent()
        if isinstance(parent, cst.Arg):
            return _is_train(context.parent(2))
        target = parent.targets[0].target if isinstance(parent, cst.Assign) and len(parent.targets) == 1 else None
        function = context.function
        if not isinstance(target, cst.Name) or function is None:
            return False
        named = [node for node in walk(function) if isinstance(node, ast.Name) and node.id == target.value]
        setting = {id(argument) for node in walk(function) if isinstance(node, ast.Call) and _is_train(node) for argument in node.args}
        return len([node for node in named if isinstance(node.ctx, ast.Store)]) == 1 and all(
            id(node) in setting for node in named if isinstance(node.ctx, ast.Load)
        )

    def _has_mode(self, kind: str) -> bool:
        """Whether this is a module class of the repository: it has a flag where its mode is asked for."""
        model = self.context.repo.class_of(kind.removeprefix("module:")) if kind.startswith("module:") else None
        return model is not None and model.id in self.context.randomness.asked_modes

    def _is_training_flag(self, node: cst.Attribute) -> bool:
        """Whether this is `self.training` of a module."""
        context = self.context
        own = node.attr.value == "training" and context.cls is not None and context.is_self(node.value)
        return own and context.cls is not None and context.repo.is_module_class(context.cls)

    def leave_UnaryOperation(self, original: cst.UnaryOperation, updated: cst.UnaryOperation) -> cst.BaseExpression | None:
        # `not self.training` has become `not not self.deterministic`.
        inner = updated.expression
        if (
            isinstance(updated.operator, cst.Not)
            and isinstance(original.expression, cst.Attribute)
            and original.expression.attr.value == "training"
            and isinstance(inner, cst.UnaryOperation)
            and isinstance(inner.operator, cst.Not)
        ):
            return inner.expression
        return None


def _is_train(call: object) -> bool:
    """Whether this is `m.train(mode)`, in the source or parsed."""
    match call:
        case cst.Call(func=cst.Attribute(attr=cst.Name("train")), args=[_]) | ast.Call(func=ast.Attribute(attr="train"), args=[_]):
            return True
    return False
