"""Weights that a module downloads while it is constructed, and loads into itself."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.downloads.loading import LOGGING, Loading, Names, reports
from migrate_agent.tools.rewrite.analysis.downloads.methods import download_methods, only_downloads
from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.analysis.repo import dotted_name
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

OWN_STATE = frozenset({"state_dict", "load_state_dict", "_load_from_state_dict"})
"""Methods of a class by which it reads or loads its state in a way of its own."""


OTHER_OWNERS = frozenset({"dict", "list", "tuple", "set", "str", "tensor"})
"""Kinds of what has methods of its own, which download nothing."""


class LeaveDownloadsOut(Rule):
    """Remove what downloads a state dictionary and loads it into a module, with a comment that says how its weights come into the port.

    All that becomes of the download must be that: dictionaries of it, renamed and filtered, that `load_state_dict` takes, and lines that tell about
    it. Declines where anything else is made of it, such as a layer with as many outputs.
    """

    KEEP = ("def f(zoo, address):\n    weights = zoo.load_url(address)\n    return weights\n",)
    CHANGE = (
        (
            "from torch import nn\nimport torch.utils.model_zoo as model_zoo\n\nclass M(nn.Module):\n"
            "    def __init__(self, d, pretrained=True):\n        super().__init__()\n        self.layer = nn.Linear(d, d)\n"
            "        if pretrained:\n            self._load()\n\n"
            "    def _load(self):\n        loaded = model_zoo.load_url('https://a.b/m.pth')\n        fitting = {}\n"
            "        own = self.state_dict()\n        for k, v in loaded.items():\n            if k in own:\n                fitting[k] = v\n"
            "        own.update(fitting)\n        self.load_state_dict(own)\n",
            "class M(nnx.Module):\n    def __init__(self, d, pretrained=True, *, rngs: nnx.Rngs):\n"
            "        self.layer = Linear(d, d, rngs=rngs)\n        if pretrained:\n            self._load()\n\n"
            "    def _load(self):\n        # The weights of https://a.b/m.pth are left out: convert them with `migrate-agent weights`.\n        pass\n",
        ),
        (
            "from torch import nn\nfrom torch.hub import load_state_dict_from_url\n\nURLS = {'small': 'https://a.b/s.pth'}\n\n"
            "class M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.layer = nn.Linear(d, d)\n\n"
            "def small(pretrained=True):\n    model = M(2)\n    if pretrained:\n"
            "        pretrained = load_state_dict_from_url(URLS['small'], progress=False)\n        del pretrained['fc.weight']\n"
            "        model.load_state_dict(pretrained)\n    return model\n",
            "URLS = {'small': 'https://a.b/s.pth'}\n\n\nclass M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n"
            "        self.layer = Linear(d, d, rngs=rngs)\n\n\ndef small(pretrained=True, *, rngs: nnx.Rngs):\n    model = M(2, rngs=rngs)\n"
            "    # The weights of https://a.b/s.pth are left out: convert them with `migrate-agent weights`.\n    return model\n",
        ),
        (
            "from torch import nn\nfrom torch.hub import load_state_dict_from_url\n\nclass Weights:\n    def __init__(self, url):\n        self.url = url\n\n"
            "    def fetch(self, progress=True):\n        return load_state_dict_from_url(self.url, progress=progress)\n\n"
            "class M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.layer = nn.Linear(d, d)\n\n"
            "def small(weights=None):\n    model = M(2)\n    if weights is not None:\n        model.load_state_dict(weights.fetch())\n    return model\n",
            "class Weights:\n    def __init__(self, url):\n        self.url = url\n\n    def fetch(self, progress=True):\n"
            "        raise NotImplementedError('the weights are left out: convert them with `migrate-agent weights`')\n\n"
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.layer = Linear(d, d, rngs=rngs)\n\n"
            "def small(weights=None, *, rngs: nnx.Rngs):\n    model = M(2, rngs=rngs)\n    if weights is not None:\n"
            "        # The weights of weights.fetch() are left out: convert them with `migrate-agent weights`.\n        pass\n    return model\n",
        ),
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._statements: dict[tuple[int, int], str] = {}
        """Line and column of each statement that is left out → the addresses that it downloads."""
        self._comments: list[cst.SimpleStatementLine] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        function = self.context.function
        if len(self.context.functions) != 1:
            return
        names = Names(self._dotted, self._is_module, self._is_report, self._gives_download)
        if function is None or self.context.host is not None or not any(map(names.is_download, walk(function))):
            return
        lines = self.context.file.lines
        for statement in Loading(function, names).statements:
            addresses = [self._address(part) for part in walk(statement) if isinstance(part, ast.Call) and names.is_download(part)]
            self._statements[span_of(statement, lines)[:2]] = ", ".join(dict.fromkeys(addresses))

    def leave_SimpleStatementLine(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> Replacement | None:
        return self._left_out(original, *original.body)

    def leave_If(self, original: cst.If, updated: cst.If) -> Replacement | None:
        return self._left_out(original, original)

    def leave_For(self, original: cst.For, updated: cst.For) -> Replacement | None:
        return self._left_out(original, original)

    def leave_With(self, original: cst.With, updated: cst.With) -> Replacement | None:
        return self._left_out(original, original)

    def leave_IndentedBlock(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.IndentedBlock | None:
        """A comment stands above the next statement, or ends the block; where it is alone, `pass` stands for a statement."""
        if len(updated.body) < 2 or not any(statement in self._comments for statement in updated.body):
            return None
        body: list[cst.BaseStatement] = []
        waiting: list[cst.EmptyLine] = []
        for statement in updated.body:
            assert isinstance(statement, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
            if statement in self._comments:
                waiting += statement.leading_lines
            else:
                body.append(statement.with_changes(leading_lines=[*waiting, *statement.leading_lines]) if waiting else statement)
                waiting = []
        if not body:
            return None
        return updated.with_changes(body=body, footer=[*waiting, *updated.footer])

    def _left_out(self, original: cst.CSTNode, *statements: cst.CSTNode) -> Replacement | None:
        """What stands in the place of a statement: a comment where it downloads something, else nothing."""
        starts = [self.context.span(statement)[:2] for statement in statements]
        if not starts or not all(start in self._statements for start in starts):
            return None
        self.context.drop_holes(original)
        address = ", ".join(filter(None, (self._statements[start] for start in starts)))
        if not address:
            return cst.RemoveFromParent()
        text = f"the weights of {address} are left out: convert them with `migrate-agent weights`"
        self.context.notes.append(f"{self.context.file.file.path}:{starts[0][0]}: {text}, and load what it writes")
        line = cst.EmptyLine(comment=cst.Comment(f"# {text[0].upper()}{text[1:]}."))
        comment = cst.SimpleStatementLine([cst.Pass()], leading_lines=[line])
        self._comments.append(comment)
        return cst.FlattenSentinel([comment])

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef | None:
        """A method that only downloads says so where it is called all the same."""
        function = self.context.function
        if (
            function is None
            or original.name.value not in download_methods(self.context.repo)
            or not only_downloads(function, self.context.file)
        ):
            return None
        self.context.drop_holes(original)
        text = "the weights are left out: convert them with `migrate-agent weights`"
        line = cst.SimpleStatementLine([cst.Raise(self.context.build(f"NotImplementedError({text!r})"))])
        return updated.with_changes(body=cst.IndentedBlock([line]))

    def _gives_download(self, function: ast.expr) -> bool:
        """Whether a method of an object only downloads; a function of a module (`json.load`) or of a table (`options.get`) may have the same name."""
        if not isinstance(function, ast.Attribute) or function.attr not in download_methods(self.context.repo):
            return False
        return not self._dotted(function) and not set(self._kinds(function.value)) & OTHER_OWNERS

    def _dotted(self, node: ast.expr) -> str:
        return dotted_name(node, self.context.file)

    def _is_module(self, node: ast.expr) -> bool:
        """Whether an expression is a module whose state is read and loaded by torch's own methods."""
        context, repo = self.context, self.context.repo
        if isinstance(node, ast.Name) and node.id == context.self_name() and context.cls is not None:
            if not repo.is_module_class(context.cls) and not repo.is_mixin(context.cls):
                return False
            models = [context.cls, *repo.descendants.get(context.cls.id, [])]
        else:
            kinds = self._kinds(node)
            if not kinds or not all(kind.startswith("module:") for kind in kinds):
                return False
            models = [model for kind in kinds if (model := repo.class_of(kind.removeprefix("module:"))) is not None]
        return not any(OWN_STATE & base.methods.keys() for model in models for base in repo.ancestors(model))

    def _is_report(self, function: ast.expr) -> bool:
        """Whether a function tells people something."""
        logs = isinstance(function, ast.Attribute) and function.attr in LOGGING
        observed = logs and any(kind.startswith("object:logging.") for kind in self._kinds(function.value))  # type: ignore[attr-defined]
        return observed or reports(self.context.file.tree, function, self._dotted)

    def _kinds(self, node: ast.expr) -> tuple[str, ...]:
        fact = self.context.facts.observed.get(span_of(node, self.context.file.lines))
        return fact.kinds if fact is not None else ()

    def _address(self, call: ast.Call) -> str:
        """The address that a call names: the text itself, where it stands there or in a table of the file."""
        node = call.args[0] if call.args else next((keyword.value for keyword in call.keywords if keyword.arg == "url"), call)
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)):
                tables = [row.value for row in self.context.file.tree.body if isinstance(row, ast.Assign) and _binds(row, name)]
                table = tables[0] if len(tables) == 1 and isinstance(tables[0], ast.Dict) else ast.Dict([], [])
                rows = zip(table.keys, table.values, strict=True)
                node = next((value for at, value in rows if isinstance(at, ast.Constant) and at.value == key), node)
        return str(node.value) if isinstance(node, ast.Constant) else " ".join(ast.unparse(node).split())


Replacement = cst.RemovalSentinel | cst.FlattenSentinel[cst.BaseStatement]


def _binds(statement: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
