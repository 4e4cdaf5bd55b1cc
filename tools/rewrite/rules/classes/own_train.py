"""Modules with a `train` of their own, which torch calls wherever a module around them is put into another mode."""

from __future__ import annotations

import libcst as cst

from migrate_agent.tools.rewrite.rules.classes.train_overrides import train_override
from migrate_agent.tools.rewrite.rules.rule import Rule


class DeriveFromOwnTrain(Rule):
    """Call a `train(mode)` of the class's own: `class M(nn.Module)` → `class M(OwnTrain)`.

    NNX sets flags where it changes modes, and calls no method. Declines where `train` takes something else
    than a mode, as a training loop does, and for classes that derive from layers with modes of their own.
    """

    KEEP = ("class Plain:\n    def train(self, mode=True):\n        return self\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n\n"
            "    def train(self, loader, epochs):\n        return epochs\n",
            "class M(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):\n        pass\n\n    def train(self, loader, epochs):\n        return epochs\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.norm = nn.BatchNorm1d(4)\n\n"
            "    def train(self, mode=True):\n        super().train(mode)\n        self.norm.eval()\n        return self\n\n"
            "    def forward(self, x):\n        return self.norm(x) if self.training else x\n",
            "class M(OwnTrain):\n    def __init__(self, *, rngs: nnx.Rngs):\n        self.norm = BatchNorm1d(4, rngs=rngs)\n\n"
            "    def train(self, mode=True):\n        super().train(mode)\n        self.norm.eval()\n        return self\n\n"
            "    def __call__(self, x):\n        return self.norm(x) if not self.deterministic else x\n",
        ),
        (
            "from torch import nn\n\nclass Merged(nn.Linear):\n    def train(self, mode=True):\n        super().train(mode)\n"
            "        self.merged = not mode\n        return self\n\nclass Norm(nn.BatchNorm1d):\n    def train(self, mode=True):\n"
            "        return super().train(False)\n",
            "class Merged(OwnTrain, Linear):\n    def train(self, mode=True):\n        super().train(mode)\n"
            "        self.merged = not mode\n        return self\n\n\nclass Norm(BatchNorm1d):\n    def train(self, mode=True):\n"
            "        return super().eval()\n",
        ),
    )

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.ClassDef | None:
        model, repo = self.context.cls, self.context.repo
        if model is None or not repo.is_module_class(model) or train_override(repo, model) is not model:
            return None
        # `OwnTrain` derives from `nnx.Module`, which need not be named beside it.
        module = cst.parse_expression("nnx.Module")
        bases = [base for base in updated.bases if not base.value.deep_equals(module)]
        return updated.with_changes(bases=[cst.Arg(self.context.helper("OwnTrain")), *bases])
