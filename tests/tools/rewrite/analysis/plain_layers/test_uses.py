"""Flax's own layers in the place of torch's: where a repository uses them plainly, and where it does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate_agent.tests.tools.rewrite.snippets import snippet_workspace, tidy
from migrate_agent.tools.rewrite.analysis.repo import Repo
from migrate_agent.tools.rewrite.assemble.workspace import Workspace
from migrate_agent.tools.types import Inventory, SourceFile

HEAD = "import torch\nfrom torch import nn\n\n"
NET = (
    "class Net(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.fc = nn.Linear(d, 3)\n"
    "        self.tok = nn.Embedding(9, d)\n        self.norm = nn.LayerNorm(8)\n"
)
PART = (
    "\n\nclass Part(nn.Module):\n    def __init__(self):\n        self.mlp = nn.Sequential(nn.Linear(3, 3), nn.ReLU())\n"
    "        self.weight = 1.0\n\n\ndef other(d):\n    mlp = d\n    d.mlp = mlp\n"
)
"""A class of the repository, whose attribute another place binds too."""
ALL = {"Linear", "LayerNorm", "Embedding", "ModuleDict", "GELU", "Conv2d", "BatchNorm2d", "Sequential"}
WEIGHTED = ALL - {"ModuleDict", "GELU", "Sequential"}

USES = [
    ("\n\ndef train(args):\n    return args.lr, args.eps\n", set()),
    ("\n\ndef train(config):\n    return config.optim.weight_decay, config.optim.eps\n", set()),
    ("\n\ndef train(args):\n    return args.training, args.eps\n", {"LayerNorm", "BatchNorm2d"}),
    ("\n\ndef train(args):\n    for arg in args:\n        print(arg.lr, arg.eps)\n", {"LayerNorm", "BatchNorm2d"}),
    (
        "\n\nclass Runner:\n    def run(self):\n        return self.config.optim.eps\n\n\ndef train(config):\n    return config.optim.lr\n",
        set(),
    ),
    (
        "\n\nclass Runner:\n    def run(self):\n        return self.last.eps\n\n\ndef train(last):\n    return last.lr\n",
        {"LayerNorm", "BatchNorm2d"},
    ),
    ("\n\ndef train(x):\n    return torch.finfo(x.dtype).eps\n", set()),
    ("", set()),
    ("    def forward(self, x):\n        return self.fc(x) + self.fc.weight.sum() * self.norm.eps\n", set()),
    ("        nn.init.xavier_uniform_(self.fc.weight)\n        self.fc.weight.data.zero_()\n", set()),
    (
        "        self.apply(self.init)\n\n    def init(self, m):\n        if isinstance(m, nn.Linear):\n            m.weight.data.normal_()\n",
        set(),
    ),
    ("        if isinstance(d, (nn.Linear, nn.Conv2d)):\n            d.weight.data.normal_()\n", set()),
    ("        if isinstance(d, (nn.Linear, nn.Conv2d)):\n            nn.init.kaiming_normal_(d.weight, mode='fan_out')\n", set()),
    ("        if isinstance(d, (nn.Linear, nn.Conv2d)):\n            nn.init.xavier_normal_(d.weight, gain=0.5)\n", {"Linear", "Conv2d"}),
    ("        if isinstance(d, (nn.Linear, nn.Conv2d)):\n            nn.init.orthogonal_(d.weight)\n", {"Linear", "Conv2d"}),
    ("        if isinstance(d, (nn.Linear, nn.Conv2d)):\n            self.other = d.weight * 2\n", {"Linear", "Conv2d"}),
    ("        if isinstance(d, (nn.Linear, nn.LayerNorm)):\n            d.weight.data.zero_()\n", set()),
    ("        if isinstance(d, (nn.Linear, nn.LayerNorm)):\n            nn.init.xavier_normal_(d.weight)\n", {"Linear", "LayerNorm"}),
    ("        if isinstance(d, self.kinds):\n            pass\n", ALL),
    ("\n\n@torch.fx.wrap\ndef whole(x):\n    return x\n", set()),
    ("        self.graph = torch.fx.symbolic_trace(self.fc)\n", ALL),
    ("        if isinstance(d, nn.Linear) or isinstance(d, nn.Conv2d):\n            d.weight.data.normal_()\n", set()),
    (
        "        name = d.__class__.__name__\n        if name.find('Linear') != -1 or 'Conv' in name:\n            d.weight.data.normal_()\n",
        set(),
    ),
    ("        if type(d).__name__ == 'Linear':\n            self.kept = [d.weight]\n", {"Linear"}),
    ("        if d.__class__.__name__.find('Li') != -1:\n            d.weight.data.zero_()\n\n\nclass Light(nn.Module): ...\n", set()),
    (
        "        if d.__class__.__name__.find('Li') != -1:\n            print(d.weight)\n\n\nclass Light(nn.Module):\n    weight = 1\n",
        WEIGHTED,
    ),
    (
        "        if 'Li' in type(d).__name__:\n            if d:\n                d.weight.data.zero_()\n\n\nclass Light(nn.Module): ...\n",
        WEIGHTED,
    ),
    ("        if d.__class__.__name__.find('Li') == -1:\n            d.weight.data.zero_()\n", WEIGHTED),
    ("        if type(d) is nn.Linear:\n            d.weight.data.normal_()\n", set()),
    ("        if type(d) in {nn.Linear}:\n            pass\n        self.one = nn.Linear(size(d), 3)\n", {"Linear"}),
    ("        if type(d) in {nn.Linear}:\n            pass\n        self.one = nn.Linear(int(d * 2.5), 3)\n", set()),
    (
        "        if isinstance(d, (nn.Linear, nn.LayerNorm)):\n            d.weight.data.zero_()\n        self.kept = [self.fc.weight]\n",
        {"Linear", "LayerNorm"},
    ),
    ("        make = nn.Linear\n        if d.__class__ == nn.Linear:\n            pass\n", {"Linear"}),
    ("        if type(d) is type(self.fc):\n            pass\n", ALL),
    ("        if type(d) is Own:\n            pass\n\n\nclass Own(nn.Module): ...\n", set()),
    ("        if type(d) in self.kinds:\n            pass\n", ALL),
    ("        size = (d[0], d[1])\n        size = [size[0], size[1]]\n        self.kept = size\n", set()),
    ("        both = [both[1], self.fc]\n        self.kept = both[0].weight\n", {"Linear"}),
    ("        self.fc.weight = self.tok.weight\n", {"Linear"}),
    ("        self.tok.weight = self.fc.weight\n", {"Embedding"}),
    ("        self.fc.weight = nn.Parameter(torch.ones(3, d))\n", {"Linear"}),
    ("        self.kept = self.fc.weight\n", {"Linear"}),
    ("        self.fc.weight.requires_grad = False\n", {"Linear"}),
    ("        self.kept = [self.fc.weight]\n", {"Linear"}),
    ("        table = self.tok.weight\n        self.same = torch.matmul(table, table) + table * 2\n", set()),
    ("        table = self.tok.weight\n        table[0] = 1.0\n", {"Embedding"}),
    ("        table = self.tok.weight\n        self.kept = table\n", {"Embedding"}),
    ("        nn.utils.parametrize.register_parametrization(self.fc, 'weight', d)\n", set()),
    ("        self.fc.weight.data[0] = 1.0\n", {"Linear"}),
    ("        self.make = dict(norm=nn.LayerNorm)\n", set()),
    ("        self.make = {nn.Linear: 1}\n", {"Linear"}),
    ("        self.other = d.head.weight\n", WEIGHTED),
    ("        self.bn = self.norm_layer(d)\n        self.norm_layer = nn.BatchNorm2d\n        self.bn.weight.data.zero_()\n", set()),
    ("        self.bn = self.norm_layer(d)\n        self.norm_layer = d\n        self.bn.weight.data.zero_()\n", WEIGHTED),
    (
        "        self.bn = make(d)\n        make = self._make\n        self._make = nn.BatchNorm2d\n        self.bn.weight.data.zero_()\n",
        set(),
    ),
    ("        self.other = getattr(d, 'weight')\n", WEIGHTED),
    ("        self.size = self.norm.normalized_shape\n", {"LayerNorm"}),
    ("        self.fc.reset_parameters()\n", {"Linear"}),
    ("        self.fc = nn.utils.weight_norm(self.fc)\n", set()),
    ("        self.norm = nn.utils.weight_norm(self.norm)\n", {"LayerNorm"}),
    ("        self.one = nn.utils.weight_norm(nn.Conv2d(3, 3, 1))\n        nn.utils.remove_weight_norm(self.one)\n", set()),
    ("        wrap = nn.utils.weight_norm if d else nn.utils.spectral_norm\n        self.one = wrap(nn.Conv2d(3, 3, 1))\n", set()),
    ("        if d.__class__.__name__.find('Linear') != -1:\n            nn.utils.weight_norm(d)\n", set()),
    ("        with torch.no_grad():\n            self.fc.weight.copy_(self.other.fc.weight)\n", set()),
    ("        for part in self.children():\n            nn.utils.weight_norm(part)\n", ALL),
    ("        self.one = d(nn.utils.weight_norm)\n", ALL),
    ("        self.net = nn.Sequential(self.fc, nn.ReLU(), self.norm)\n        self.net[-1].weight.data.zero_()\n", set()),
    (
        "        self.net = nn.Sequential(self.fc, nn.ReLU(), self.norm)\n        for part in self.net:\n            part.weight.data[0] = 1.0\n",
        {"Linear", "LayerNorm"},
    ),
    (
        "        d = (d[1], d[0])\n        self.size = (self.size[0], self.other[1])\n        self.other = (self.size[1], self.other[0])\n",
        set(),
    ),
    ("        self.parts = [self.parts[1], self.fc]\n        self.parts[0].weight.data.zero_()\n", set()),
    ("        self.parts = nn.ModuleList([nn.Linear(d, d) for _ in range(3)])\n        self.parts[d].weight.data.zero_()\n", set()),
    ("        self.parts = nn.ModuleList(d)\n        self.parts[d].weight.data.zero_()\n", WEIGHTED),
    ("        self.one = None\n        if d:\n            self.one = nn.Linear(d, d)\n        self.one.weight.data.zero_()\n", set()),
    (
        "        self.one = Own() if d else nn.Linear(d, d)\n        self.one.weight.data.zero_()\n\n\nclass Own(nn.Module): ...\n",
        {"Linear"},
    ),
    ("        self.one = Own()\n        self.one.weight.data.zero_()\n\n\nclass Own(nn.Module): ...\n", set()),
    ("        self.one = make(d)\n        self.one.weight.data.zero_()\n\n\ndef make(d):\n    return nn.Linear(d, d)\n", set()),
    ("        fc = d\n        self.other = self.fc.weight * 2\n", set()),
    ("        self.approximate = d.approximate\n", set()),
    ("        self.other = d.approximate\n", {"GELU"}),
    ("        one, two = nn.LayerNorm, nn.Linear\n        self.one = two(d, d)\n", set()),
    ("        self.act = nn.Softmax(-1)\n        self.axes = d.dim()\n", set()),
    ("        self.part = Own()\n        self.made = self.part(d, device=None)\n\n\nclass Own(nn.Module): ...\n", set()),
    ("        nn.utils.clip_grad_norm_(self.parameters(), 1.0)\n", set()),
    ("\n\nclass Own(nn.Linear):\n    pass\n", {"Linear"}),
    ("        self.rows = self.tok.padding_idx\n", {"Embedding"}),
    ("        self.act = nn.GELU()\n        self.how = self.act.approximate\n", {"GELU"}),
    ("        if isinstance(d, nn.GELU):\n            pass\n", {"GELU"}),
    ("        self.of = nn.ModuleDict()\n        self.of['a'] = self.of.a\n", set()),
    ("        self.of = nn.ModuleDict()\n        for name in self.of:\n            pass\n", {"ModuleDict"}),
    ("        if isinstance(d, nn.Conv2d):\n            self.one = nn.Conv1d(d, d, 1)\n", {"Conv2d"}),
    ("        if isinstance(d, (nn.Conv2d, nn.Conv1d)):\n            self.one = nn.Conv1d(d, d, 1)\n", set()),
    ("        self.net = nn.Sequential(self.fc)\n        self.part = self.net[:1]\n", {"Sequential"}),
    ("        self.net = nn.Sequential(self.fc)\n        self.net.append(self.norm)\n", {"Sequential"}),
    ("        self.net = nn.Sequential(self.fc)\n        self.part = self.net[0]\n        self.size = len(self.net)\n", set()),
    ("        self.net = nn.Sequential(self.fc) if d else [self.fc]\n        self.part = self.net[0]\n", {"Sequential"}),
    ("        self.net = nn.Sequential(nn.LSTM(d, d), self.fc)\n", {"Sequential"}),
    ("        self.net = nn.Sequential(self.fc)\n        self.out = self.net((d, d))\n", {"Sequential"}),
    ("        self.net = nn.Sequential(self.fc)\n        self.out = self.net(*d)\n", {"Sequential"}),
    ("        self.net = nn.Sequential(self.fc)\n        self.out = self.net(d)\n", set()),
    (
        "        self.net = nn.Sequential(Own(), self.fc)\n\n\nclass Own(nn.Module):\n    def forward(self, x):\n        return tuple(f(x) for f in self.fs)\n",
        {"Sequential"},
    ),
    (
        "        self.net = nn.Sequential(Own(), self.fc)\n\n\nclass Own(nn.Module):\n    def forward(self, x):\n        return x, x\n",
        {"Sequential"},
    ),
    (
        "        self.net = Own(nn.Sequential(self.fc))\n\n\nclass Own(nn.Module):\n    def __init__(self, net):\n        self.net = net\n        self.parts = net[1:]\n",
        {"Sequential"},
    ),
    ("        if isinstance(d, nn.modules.batchnorm._BatchNorm):\n            self.one = nn.BatchNorm2d(d)\n", {"BatchNorm2d"}),
    ("        norm = nn.BatchNorm2d\n        self.one = norm(d)\n", set()),
    ("        norm = nn.BatchNorm2d\n        self.one = norm(d, track_running_stats=False)\n", {"BatchNorm2d"}),
    ("        self.made = self.make(d, device=None)\n\n    def make(self, d, device):\n        return d\n", set()),
    ("        d.tok = self.tok\n        self.table = self.tok.weight.t()\n", set()),
    ("        norm = nn.LayerNorm\n        self.one = norm([d, d])\n", {"LayerNorm"}),
    ("        for name, value in d.items():\n            pass\n", {"ModuleDict"}),
    ("        self.part = Part()\n        nn.init.normal_(self.part.mlp[0].weight)\n" + PART, set()),
    ("        self.part = Part() if d else make(d)\n        nn.init.normal_(self.part.mlp[0].weight)\n" + PART, WEIGHTED | {"Sequential"}),
    ("        self.part = Part()\n        self.kept = [self.part.mlp[0].weight]\n" + PART, {"Linear"}),
    ("        self.parts = nn.ModuleList([Part() for _ in range(d)])\n        self.parts[0].mlp[0].weight.data.zero_()\n" + PART, set()),
    (
        "        self.parts = nn.ModuleList()\n        self.parts.append(Part())\n        self.parts[0].mlp[0].weight.data.zero_()\n"
        + PART,
        set(),
    ),
    (
        "        self.parts = nn.ModuleList()\n        self.parts.append(Part())\n        self.parts.append(d)\n"
        "        self.parts[0].mlp[0].weight.data.zero_()\n" + PART,
        WEIGHTED | {"Sequential"},
    ),
    (
        "        self.parts = [Part() for _ in range(d)]\n        for part in self.parts:\n            part.mlp[0].weight.data.zero_()\n"
        + PART,
        set(),
    ),
    ("        for part in d:\n            if isinstance(part, Part):\n                self.kept = part.weight\n" + PART, set()),
    (
        "        for part in d:\n            if not isinstance(part, Part):\n                continue\n            self.kept = part.weight\n"
        + PART,
        set(),
    ),
    (
        "        for part in d:\n            if not isinstance(part, Part):\n                pass\n            self.kept = part.weight\n"
        + PART,
        WEIGHTED,
    ),
    ("        self.kept = [self.fc.parametrizations.weight.original]\n", {"Linear"}),
    ("        self.kept = [d.parametrizations.weight.original]\n", WEIGHTED),
]
"""(what stands at the end of a class's constructor, which of its layers are then not plain)."""


@pytest.mark.parametrize(("use", "refused"), USES, ids=[str(i) for i in range(len(USES))])
def test_only_what_flax_has_too_is_plain(tmp_path: Path, use: str, refused: set[str]) -> None:
    kinds = Repo(replace(snippet_workspace(tmp_path, HEAD + NET + use).inventory, style="plain")).plain.kinds
    assert ALL - {kind.removeprefix("torch.nn.") for kind in kinds} == refused


FILES = [
    ({}, "        self.kept = [self.fc.weight]\n", True),
    ({}, "        self.fc.reset_parameters()\n", True),
    ({}, "\n\nclass Own(nn.Linear):\n    pass\n", True),
    ({}, "        self.kept = [d.fc.weight]\n", False),
    ({}, "        nn.utils.weight_norm(d)\n", False),
    ({"other": "from wild import Net as Wild\n"}, "        self.kept = [self.fc.weight]\n", False),
    ({"other": "import third\n", "third": "def part():\n    import wild\n"}, "        self.kept = [self.fc.weight]\n", False),
    ({"third": "import wild\n"}, "        self.kept = [self.fc.weight]\n", True),
    (
        {"third": "import pandas as pd\n\ndef f(x):\n    for kind in {pd.Series: 1}:\n        isinstance(x, kind)\n"},
        "        self.fc.reset_parameters()\n",
        True,
    ),
    ({"third": "def f(x, kind):\n    isinstance(x, kind)\n"}, "        self.fc.reset_parameters()\n", False),
    (
        {"third": "import wild\n\ndef f(x):\n    for kind in wild.KINDS:\n        isinstance(x, kind)\n"},
        "        self.fc.reset_parameters()\n",
        False,
    ),
    ({"third": "def size(net):\n    return net.fc.weight.sum()\n"}, "        self.kept = [self.fc.weight]\n", False),
]
"""(the beginnings of other files; what stands at the end of the constructor in `wild.py`; whether the layers of `other.py` stay plain)."""


@pytest.mark.parametrize(("beginnings", "use", "is_plain"), FILES, ids=[str(i) for i in range(len(FILES))])
def test_files_that_no_import_connects_decide_alone(tmp_path: Path, beginnings: dict[str, str], use: str, is_plain: bool) -> None:
    texts = {"wild": HEAD + NET + use, "other": beginnings.get("other", "") + HEAD + NET, "third": beginnings.get("third", "")}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    files = tuple(SourceFile(f"{name}.py", name, f"{name}_jax.py", f"{name}_jax", True) for name in texts)
    repo = Repo(Inventory(tmp_path, files, (), style="plain"))
    plain = {name: "torch.nn.Linear" in repo.plain_in(repo.files[f"{name}.py"]).kinds for name in ("wild", "other")}
    assert plain == {"wild": False, "other": is_plain}


SPELLED = [
    ("nn.Linear(d, 2 * d)", "nnx.Linear(d, 2 * d, kernel_init=fan_in_kernel, bias_init=fan_in_bias(d), rngs=rngs)"),
    ("nn.Linear(d, 3, bias=False)", "nnx.Linear(d, 3, use_bias=False, kernel_init=fan_in_kernel, rngs=rngs)"),
    ("nn.Linear(d, 3, True, dtype=torch.float16)", "Linear(d, 3, True, dtype=jnp.float16, rngs=rngs)"),
    ("nn.Linear(int(d * 2), 3)", "nnx.Linear(int(d * 2), 3, kernel_init=fan_in_kernel, bias_init=fan_in_bias(int(d * 2)), rngs=rngs)"),
    ("nn.Linear(size(d), 3)", "Linear(size(d), 3, rngs=rngs)"),
    ("nn.Linear(*d)", "Linear(*d, rngs=rngs)"),
    ("nn.Embedding(9, d)", "nnx.Embed(9, d, embedding_init=nnx.initializers.normal(1.0), rngs=rngs)"),
    ("nn.Embedding(9, d, padding_idx=0)", "Embedding(9, d, padding_idx=0, rngs=rngs)"),
    ("nn.RMSNorm(8)", "MachineEpsilonRMSNorm(8, rngs=rngs)"),
    ("nn.RMSNorm(8, None, False)", "MachineEpsilonRMSNorm(8, use_scale=False, rngs=rngs)"),
    ("nn.RMSNorm(8, eps=1e-5)", "nnx.RMSNorm(8, epsilon=1e-5, rngs=rngs)"),
    ("nn.RMSNorm((8, 8), eps=1e-5)", "RMSNorm((8, 8), eps=1e-5, rngs=rngs)"),
    ("nn.GELU()", "partial(jax.nn.gelu, approximate=False)"),
    ("nn.GELU(d)", "GELU(d)"),
    ("nn.Softmax(-1)", "partial(jax.nn.softmax, axis=-1)"),
    ("nn.Softmax()", "Softmax()"),
    ("nn.LeakyReLU(0.2)", "partial(leaky_relu, negative_slope=0.2)"),
    ("nn.ELU()", "jax.nn.elu"),
    ("nn.Identity()", "nnx.identity"),
    ("nn.AdaptiveAvgPool2d((1, 1))", "partial(jnp.mean, axis=(-2, -1), keepdims=True)"),
    ("nn.MaxPool2d(3, 2, 1)", "partial(channels_first_pool, nnx.max_pool, window=(3, 3), strides=(2, 2), padding=1)"),
    ("nn.AvgPool2d(2)", "partial(channels_first_pool, nnx.avg_pool, window=(2, 2), strides=(2, 2))"),
    ("nn.MaxPool2d(3, 2, ceil_mode=True)", "MaxPool2d(3, 2, ceil_mode=True)"),
    ("nn.AdaptiveAvgPool2d(7)", "AdaptiveAvgPool2d(7)"),
    ("nn.Conv2d(3, d, 1, bias=False)", "ChannelsFirstConv(3, d, (1, 1), use_bias=False, kernel_init=fan_in_kernel, rngs=rngs)"),
    (
        "nn.Conv1d(d, 4, 3, 2, 1, groups=2)",
        "ChannelsFirstConv(d, 4, (3,), strides=2, padding=1, feature_group_count=2, kernel_init=fan_in_kernel, "
        "bias_init=fan_in_bias(d * 3 // 2), rngs=rngs)",
    ),
    (
        "nn.Conv2d(d, d, (d, 1), padding=(d // 2, 0), groups=d)",
        "ChannelsFirstConv(d, d, (d, 1), padding=(d // 2, 0), feature_group_count=d, kernel_init=fan_in_kernel, bias_init=fan_in_bias(d), rngs=rngs)",
    ),
    (
        "nn.ConvTranspose2d(d, 4, 4, 2, 1)",
        "ChannelsFirstConvTranspose(d, 4, (4, 4), strides=2, padding=[(2, 2), (2, 2)], transpose_kernel=True, kernel_init=fan_in_kernel, "
        "bias_init=fan_in_bias(64), rngs=rngs)",
    ),
    (
        "nn.ConvTranspose1d(3, 4, 3, stride=2, padding=0, output_padding=1, bias=False)",
        "ChannelsFirstConvTranspose(3, 4, (3,), strides=2, padding=[(2, 3)], transpose_kernel=True, use_bias=False, "
        "kernel_init=fan_in_kernel, rngs=rngs)",
    ),
    ("nn.ConvTranspose2d(3, 4, 4, groups=1, dilation=2)", "ConvTranspose2d(3, 4, 4, groups=1, dilation=2, rngs=rngs)"),
    ("nn.Conv2d(3, 4, 3, padding_mode='reflect')", "Conv2d(3, 4, 3, padding_mode='reflect', rngs=rngs)"),
    ("nn.BatchNorm2d(d, momentum=0.01)", "SampleBatchNorm(d, momentum=0.01, rngs=rngs)"),
    ("nn.BatchNorm2d(d, momentum=None)", "BatchNorm2d(d, momentum=None, rngs=rngs)"),
    ("nn.GroupNorm(2, d)", "ChannelsFirstGroupNorm(2, d, rngs=rngs)"),
    ("nn.Sequential(nn.ReLU(), nn.Tanh())", "nnx.Sequential(jax.nn.relu, jnp.tanh)"),
    ("nn.Sequential(nn.Linear(d, 3))", "nnx.Sequential(nnx.Linear(d, 3, kernel_init=fan_in_kernel, bias_init=fan_in_bias(d), rngs=rngs))"),
    ("nn.Sequential(*d)", "nnx.Sequential(*d)"),
    ("nn.Sequential()", "nnx.Sequential()"),
    ("nn.Sequential(d)", "Sequential(d)"),
    ("nn.ModuleDict(dict(a=nn.ReLU()))", "nnx.Dict(a=jax.nn.relu)"),
    ("nn.LayerNorm(8, eps=1e-6)", "nnx.LayerNorm(8, epsilon=1e-6, use_fast_variance=False, rngs=rngs)"),
    ("nn.LayerNorm(8, bias=False)", "nnx.LayerNorm(8, epsilon=1e-05, use_bias=False, use_fast_variance=False, rngs=rngs)"),
    ("nn.LayerNorm((4, 8))", "LayerNorm((4, 8), rngs=rngs)"),
]


def _rewritten(folder: Path, source: str, style: str) -> str:
    inventory = replace(snippet_workspace(folder, source).inventory, style=style)  # type: ignore[arg-type]
    return tidy("".join(statement.text for statement in Workspace(inventory, {}).statements("snippet.py")))


@pytest.mark.parametrize(("layer", "flax"), SPELLED, ids=[row[0] for row in SPELLED])
def test_a_plain_layer_is_flaxs_own(tmp_path: Path, layer: str, flax: str) -> None:
    source = f"{HEAD}class Net(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.part = {layer}\n"
    expected = tidy(f"class Net(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.part = {flax}\n")
    assert _rewritten(tmp_path, source, "plain") == expected
    assert "nnx.Linear(" not in _rewritten(tmp_path, source, "close")


WRITTEN = [
    (
        "for part in d:\n            if isinstance(part, (nn.Linear, nn.Embedding)):\n                part.weight.data.normal_(0.0, 0.02)",
        "weight_of(part)[...] = 0.02 * jax.random.normal(",
    ),
    (
        "for part in d:\n            if isinstance(part, (nn.Linear, nn.Embedding)):\n                nn.init.zeros_(part.weight)",
        "weight_of(part)[...] = jnp.zeros_like(weight_of(part))",
    ),
    ("table = self.tok.weight\n        self.rows = table * 2", "table = self.tok.embedding\n        self.rows = table * 2"),
    (
        "for part in d:\n            if isinstance(part, (nn.Linear, nn.Conv2d)):\n                nn.init.normal_(part.weight, std=0.02)",
        "part.kernel[...] = 0.02 * jax.random.normal(",
    ),
    (
        "for part in d:\n            if isinstance(part, (nn.Linear, nn.Conv2d)):\n                nn.init.kaiming_normal_(part.weight, mode='fan_out')",
        'part.kernel[...] = nnx.initializers.variance_scaling(2.0, "fan_out", "normal")(',
    ),
    (
        "for part in d:\n            if isinstance(part, (nn.Linear, nn.Conv2d)):\n                part.weight.data.zero_()",
        "part.kernel[...] = jnp.zeros_like(part.kernel",
    ),
    (
        "for part in d:\n            if type(part) in {nn.Linear}:\n                nn.init.zeros_(part.weight)",
        "if type(part) in {nnx.Linear}:\n                part.kernel[...] = jnp.zeros_like(part.kernel)",
    ),
    ("nn.init.normal_(self.fc.weight, std=0.02)", "kernel_init=nnx.initializers.normal(0.02)"),
    (
        "nn.init.xavier_uniform_(self.fc.weight)",
        'kernel_init=nnx.initializers.variance_scaling(1.0, "fan_avg", "uniform")',
    ),
    ("nn.init.xavier_uniform_(self.fc.weight, d)", "self.fc.kernel[...] = init_xavier_uniform("),
    ("self.fc.weight.data.fill_(0.5)", "kernel_init=nnx.initializers.constant(0.5)"),
    ("self.fc.weight.data = torch.eye(3)", "self.fc.kernel[...] = jnp.eye(3).T"),
    ("self.fc.weight.data = d(self.fc.weight.data.size())", "self.fc.kernel[...] = d(self.fc.kernel[...].T.shape).T"),
    (
        "self.fc.weight.data = torch.rand(self.fc.weight.data.size())",
        "self.fc.kernel[...] = jax.random.uniform(rngs.params(), self.fc.kernel.shape)",
    ),
    ("self.fc.weight.data.mul_(0.1)", "self.fc.kernel[...] = self.fc.kernel[...] * 0.1"),
    ("self.fc.weight.data.clamp_(-0.1, 0.1)", "self.fc.kernel[...] = clamp(self.fc.kernel[...], -0.1, 0.1)"),
    ("nn.init.ones_(self.norm.weight)", "self.norm.scale[...] = jnp.ones_like(self.norm.scale[...])"),
    ("self.rows = self.fc.weight.shape[0]", "self.rows = self.fc.kernel[...].T.shape[0]"),
    (
        "self.conv = nn.Conv2d(3, 4, 3)\n        nn.init.kaiming_normal_(self.conv.weight, mode='fan_out', nonlinearity='relu')",
        'kernel_init=nnx.initializers.variance_scaling(2.0, "fan_out", "normal")',
    ),
    (
        "self.conv = nn.Conv2d(3, 4, 3)\n        self.conv.weight.data = torch.ones(4, 3, 3, 3)",
        "self.conv.kernel[...] = jnp.ones((4, 3, 3, 3)).transpose(2, 3, 1, 0)",
    ),
    ("self.eps = self.norm.eps", "self.eps = self.norm.epsilon"),
]


@pytest.mark.parametrize(("statement", "expected"), WRITTEN, ids=[row[0] for row in WRITTEN])
def test_parameters_of_plain_layers_are_read_and_written_in_torchs_layout(tmp_path: Path, statement: str, expected: str) -> None:
    assert expected in _rewritten(tmp_path, f"{HEAD}{NET}        {statement}\n", "plain")


def test_names_are_still_asked_for_where_helpers_have_them(tmp_path: Path) -> None:
    use = "        if d.__class__.__name__.find('Linear') != -1:\n            d.bias.data.zero_()\n\n\nclass Own(nn.Linear): ...\n"
    assert "__class__.__name__.find" in _rewritten(tmp_path, f"{HEAD}{NET}{use}", "plain")
