"""Guessed examples: each one ran in the sandbox before it was given."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record import record
from migrate_agent.tools.record.guessing.job import NOT_CALLED
from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.repairs import repairs, smaller_models
from migrate_agent.tools.record.guessing.rows import INIT_ROWS, parameter_texts
from migrate_agent.tools.record.guessing.search import Found, Search
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, Stage, Trial
from migrate_agent.tools.record.guessing.values import Tensor
from migrate_agent.tools.record.infer import infer
from migrate_agent.tools.scan import scan

HEAD = "import torch\nfrom torch import nn\nfrom dataclasses import dataclass\n"

GUESSABLE = {
    "rows, of which the first batch sets parameters": (
        "class Net(nn.Module):\n def __init__(self, dim):\n  super().__init__()\n  self.s = nn.Parameter(torch.zeros(1, dim))\n  self.done = False\n"
        " def forward(self, x):\n  if not self.done:\n   self.s.data = -torch.log(x.std(dim=0, keepdim=True)).detach()\n   self.done = True\n"
        "  return x * torch.exp(self.s)\n",
        ("64", "torch.randn(2, 64)"),
    ),
    "a list that a method takes apart": (
        "class Net(nn.Module):\n"
        " def __init__(self, sizes):\n"
        "  super().__init__()\n"
        "  self.sizes = sizes\n"
        "  self.fc = nn.Linear(8, 8)\n"
        " def forward(self, x):\n"
        "  width, length = self.sizes\n"
        "  return self.fc(x)[..., :width] * length\n",
        ("[32, 32]", "torch.randn(2, 16, 8)"),
    ),
    "two numbers of which the constructor takes the less": (
        "class Net(nn.Module):\n def __init__(self, fin, fout, inner=None):\n  super().__init__()\n"
        "  inner = min(fin, fout) if inner is None else inner\n  self.fc = nn.Sequential(nn.Linear(fin, inner), nn.Linear(inner, fout))\n"
        " def forward(self, x):\n  return self.fc(x)\n",
        ("64, 64", "torch.randn(2, 16, 64)"),
    ),
    "a power that is called as a rate of dropout is": (
        "class Net(nn.Module):\n def __init__(self, p):\n  super().__init__()\n  self.p = p\n"
        " def forward(self, x):\n  return torch.pow(x.abs(), self.p).sum(1)\n",
        ("2", "torch.randn(2, 16, 64)"),
    ),
    "noise beside labels, which alone are embedded": (
        "class Net(nn.Module):\n def __init__(self, z_dim, nlabels):\n  super().__init__()\n"
        "  self.embedding, self.fc = nn.Embedding(nlabels, 8), nn.Linear(z_dim + 8, 4)\n"
        " def forward(self, z, y):\n  assert z.size(0) == y.size(0)\n"
        "  return self.fc(torch.cat([z, self.embedding(y)], dim=1))\n",
        ("64, 64", "torch.randn(2, 64), torch.randint(0, 8, (2,))"),
    ),
    "rows that a loop takes apart": (
        "class Net(nn.Module):\n"
        " def __init__(self, stages):\n"
        "  super().__init__()\n"
        "  self.parts = nn.ModuleList()\n"
        "  for width, hidden in stages:\n"
        "   self.parts.append(nn.Sequential(nn.Linear(width, hidden), nn.Linear(hidden, width)))\n"
        " def forward(self, x):\n"
        "  for part in self.parts:\n"
        "   x = part(x)\n"
        "  return x\n",
        ("[(32, 64,), (32, 64,)]", "torch.randn(2, 16, 32)"),
    ),
    "a table as wide as a layer asks": (
        "class Net(nn.Module):\n"
        " def __init__(self, embedding_matrix):\n"
        "  super().__init__()\n"
        "  self.embed = nn.Embedding.from_pretrained(torch.tensor(embedding_matrix, dtype=torch.float))\n"
        "  self.fc = nn.Linear(24, 3)\n"
        " def forward(self, tokens):\n"
        "  return self.fc(self.embed(tokens))\n",
        ("torch.linspace(0.1, 1, 1536).reshape(64, 24)", "torch.randint(0, 64, (2, 16))"),
    ),
    "states of a cell, and an image for it": (
        "class Net(nn.Module):\n"
        " def __init__(self, channels):\n"
        "  super().__init__()\n"
        "  self.conv = nn.Conv2d(channels, 4, 3, stride=4, padding=1)\n"
        "  self.cell = nn.LSTMCell(4 * 6 * 6, 48)\n"
        " def forward(self, x, hx, cx):\n"
        "  x = self.conv(x)\n"
        "  return self.cell(x.view(x.size(0), -1), (hx, cx))\n",
        ("8", "torch.randn(2, 8, 24, 24), torch.randn(2, 48), torch.randn(2, 48)"),
    ),
    "descriptions of spaces": (
        "class Net(nn.Module):\n"
        " def __init__(self, observation_space, action_space):\n"
        "  super().__init__()\n"
        "  self.fc = nn.Linear(observation_space.shape[0], action_space.n)\n"
        " def forward(self, x):\n"
        "  return self.fc(x)\n",
        ("types.SimpleNamespace(shape=(64,)), types.SimpleNamespace(n=4)", "torch.randn(2, 16, 64)"),
    ),
    "an input that is squeezed": (
        "class Net(nn.Module):\n"
        " def __init__(self, size):\n"
        "  super().__init__()\n"
        "  self.fc = nn.Linear(2 * size, size)\n"
        " def forward(self, facts, question):\n"
        "  return self.fc(torch.cat([facts.mean(1), question.squeeze(1)], 1))\n",
        ("64", "torch.randn(2, 16, 64), torch.randn(2, 1, 64)"),
    ),
    "a switch behind which a package is absent": (
        "class Net(nn.Module):\n"
        " def __init__(self, load_weights=False):\n"
        "  super().__init__()\n"
        "  self.fc = nn.Linear(8, 8)\n"
        "  if not load_weights:\n"
        "   import torchvision_that_is_absent\n"
        "   torchvision_that_is_absent.models.vgg16()\n"
        " def forward(self, x):\n"
        "  return self.fc(x)\n",
        ("load_weights=True", "torch.randn(2, 16, 8)"),
    ),
    "an image that is divided by its norm, beside words": (
        "class Net(nn.Module):\n def __init__(self, words):\n  super().__init__()\n  self.embedding = nn.Embedding(words, 16)\n"
        "  self.conv = nn.Conv2d(8, 16, 1)\n"
        " def forward(self, v, q):\n  v = v / v.norm(p=2, dim=1, keepdim=True)\n"
        "  return self.conv(v).mean((2, 3)) * self.embedding(q).mean(1)\n",
        ("64", "torch.randn(2, 8, 32, 32), torch.randint(0, 8, (2, 8, 2, 2))"),
    ),
    "a function that the call is handed": (
        "class Net(nn.Module):\n def __init__(self, size):\n  super().__init__()\n  self.norm = nn.LayerNorm(size)\n"
        " def forward(self, x, sublayer):\n  return x + sublayer(self.norm(x))\n",
        ("64", "torch.randn(2, 16, 64), torch.tanh"),
    ),
    "a first state that a method of the module makes": (
        "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n"
        "  self.cells = nn.ModuleList([nn.LSTM(64, 32), nn.LSTM(32, 48)])\n"
        " def forward(self, x, hidden):\n  new = []\n  for cell, state in zip(self.cells, hidden):\n"
        "   x, state = cell(x, state)\n   new.append(state)\n  return x, new\n"
        " def init_hidden(self, bsz):\n  return [(torch.zeros(1, bsz, n), torch.zeros(1, bsz, n)) for n in (32, 48)]\n",
        (
            "",
            "torch.randn(2, 32, 64), [(torch.rand(1, 32, 32), torch.rand(1, 32, 32)), (torch.rand(1, 32, 48), torch.rand(1, 32, 48))]",
        ),
    ),
    "a rate that dropout takes": (
        "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(64, 4)\n"
        " def forward(self, x, prob):\n  return self.fc(nn.functional.dropout(x, prob, self.training))\n",
        ("", "torch.randn(2, 16, 64), 0.1"),
    ),
    "a number that the constructor alone accepts": (
        "class Net(nn.Module):\n def __init__(self, width, steps):\n  super().__init__()\n"
        "  if steps == 16:\n   rate = 2\n  elif steps == 8:\n   rate = 4\n  else:\n   raise NotImplementedError\n"
        "  self.fc = nn.Linear(width, rate)\n def forward(self, x):\n  return self.fc(x)\n",
        ("32, 16", "torch.randn(2, 16, 32)"),
    ),
    "a size that is as large as what convolutions leave": (
        "class Net(nn.Module):\n def __init__(self, input_size, hidden_size):\n  super().__init__()\n"
        "  self.conv = nn.Sequential(nn.Conv2d(3, 64, 3), nn.MaxPool2d(4))\n"
        "  self.fc = nn.Linear(input_size * 7, hidden_size)\n"
        " def forward(self, x):\n  x = self.conv(x)\n  return self.fc(x.view(x.size(0), -1))\n",
        ("448, 64", "torch.randn(2, 3, 32, 32)"),
    ),
    "an object whose methods are called, of the class that implements them": (
        "class Pairs:\n def __init__(self, step=1):\n  self.step = step\n def pairs_of(self, x):\n  raise NotImplementedError\n"
        "class Neighbours(Pairs):\n def pairs_of(self, x):\n  return x, x.roll(self.step, 0)\n"
        "class Net(nn.Module):\n def __init__(self, margin, picker):\n  super().__init__()\n  self.margin, self.picker = margin, picker\n"
        " def forward(self, x):\n  a, b = self.picker.pairs_of(x)\n  return (self.margin - (a - b).pow(2)).relu().mean()\n",
        ("0.5, Neighbours()", "torch.randn(2, 16, 64)"),
    ),
    "a configuration whose sizes are None until somebody says them": (
        "@dataclass\nclass ModelConfig:\n block_size: int = None\n vocab_size: int = None\n n_embd: int = 16\n"
        "class Net(nn.Module):\n def __init__(self, config):\n  super().__init__()\n"
        "  self.wte = nn.Embedding(config.vocab_size, config.n_embd)\n  self.block_size = config.block_size\n"
        " def forward(self, idx):\n  assert idx.size(1) <= self.block_size\n  return self.wte(idx)\n",
        ("ModelConfig(block_size=32, vocab_size=64, n_embd=64)", "torch.randint(0, 64, (2, 16))"),
    ),
    "keywords that a base reads by their names": (
        "class Sizes:\n def __init__(self, **options):\n  self.width, self.depth = int(options.get('width')), int(options.pop('depth', 2))\n"
        "class Net(nn.Module, Sizes):\n def __init__(self, rate, **options):\n  nn.Module.__init__(self)\n  Sizes.__init__(self, **options)\n"
        "  self.fc = nn.Linear(self.width, options['n_out'])\n def forward(self, x):\n  return self.fc(x)\n",
        ("0.0, width=32, n_out=64", "torch.randn(2, 16, 32)"),
    ),
    "a device that tensors are moved to, and how many there are": (
        "class Net(nn.Module):\n def forward(self, x, n, device, out_dtype=None):\n  total = torch.zeros(1).to(device)\n"
        "  mask = torch.ones(n, device=device, dtype=out_dtype)\n  return x[..., :n] * mask + total\n",
        ("", "torch.randn(2, 16, 64), 8, 'cpu'"),
    ),
    "a matrix between nodes that is an array of NumPy": (
        "class Net(nn.Module):\n def __init__(self, adj_mx):\n  super().__init__()\n"
        "  self.fc = nn.Linear(len(adj_mx), 4)\n  self.total = float(adj_mx.astype('float32').sum())\n"
        " def forward(self, x):\n  return self.fc(x) * self.total\n",
        ("torch.ones(8, 8).numpy()", "torch.randn(2, 16, 8)"),
    ),
    "a module that torch.jit would compile": (
        "from torch import jit\nclass Net(jit.ScriptModule):\n __constants__ = ['dim']\n def __init__(self, dim: int):\n  super().__init__()\n"
        "  self.dim = dim\n  self.fc = nn.Linear(dim, dim)\n @jit.script_method\n def forward(self, x):\n"
        "  return f_of(self.fc(x)) * self.dim\ndef f_of(x, *rest, **options):\n return x\n",
        ("64", "torch.randn(2, 16, 64)"),
    ),
    "a download of weights, turned off by what decides it": (
        "from torch.utils import model_zoo\nclass Net(nn.Module):\n def __init__(self, dim: int, bias=True, imagenet=True):\n  super().__init__()\n"
        "  self.fc = nn.Linear(dim, dim, bias=bias)\n  if imagenet:\n   self.load()\n"
        " def load(self):\n  self.load_state_dict(model_zoo.load_url('https://no.such.host/m.pth'))\n"
        " def forward(self, x):\n  return self.fc(x)\n",
        ("64, imagenet=False", "torch.randn(2, 16, 64)"),
    ),
    "a download of weights that nothing turns off": (
        "from torch.hub import load_state_dict_from_url\ndef part(dim, pretrained=True):\n layer = nn.Linear(dim, dim)\n if pretrained:\n"
        "  layer.load_state_dict(load_state_dict_from_url('https://no.such.host/m.pth'))\n return layer\n"
        "class Net(nn.Module):\n def __init__(self, dim: int):\n  super().__init__()\n  self.fc = part(dim)\n"
        " def forward(self, x):\n  return self.fc(x)\n",
        ("64", "torch.randn(2, 16, 64)"),
    ),
    "another file of the network, named by a word": (
        "from urllib.error import URLError\nclass Net(nn.Module):\n def __init__(self, dim: int, weights='imagenet', bias=True):\n  super().__init__()\n"
        "  self.fc = nn.Linear(dim, dim, bias=bias)\n  if weights:\n   raise URLError('no host of this name')\n"
        " def forward(self, x):\n  return self.fc(x)\n",
        ("64, weights=None", "torch.randn(2, 16, 64)"),
    ),
    "linear layers": (
        "class Net(nn.Module):\n def __init__(self, in_features, hidden, p=0.1):\n  super().__init__()\n"
        "  self.fc = nn.Linear(in_features, hidden)\n def forward(self, x):\n  return self.fc(x)\n",
        ("64, 64", "torch.randn(2, 16, 64)"),
    ),
    "compiled by TorchScript": (
        "class Net(torch.jit.ScriptModule):\n def __init__(self, dim: int):\n  super().__init__()\n  self.fc = nn.Linear(dim, dim)\n"
        " @torch.jit.script_method\n def forward(self, x: torch.Tensor, scale: float):\n  return self.fc(x) * scale\n",
        ("64", "torch.randn(2, 16, 64), 2"),
    ),
    "indices of small tables, in a part that is called twice": (
        "class Marks(nn.Module):\n def __init__(self, d):\n  super().__init__()\n  self.a, self.b = nn.Embedding(24, d), nn.Embedding(7, d)\n"
        " def forward(self, x):\n  x = x.long()\n  return self.a(x[:, :, 0]) + self.b(x[:, :, 1])\n"
        "class Net(nn.Module):\n def __init__(self, d_in, d_model):\n  super().__init__()\n"
        "  self.fc, self.marks = nn.Linear(d_in, d_model), Marks(d_model)\n"
        " def forward(self, x_enc, x_mark_enc, x_dec, x_mark_dec):\n"
        "  return (self.fc(x_enc) + self.marks(x_mark_enc)) @ (self.fc(x_dec) + self.marks(x_mark_dec)).transpose(1, 2)\n",
        (
            "64, 64",
            "torch.randn(2, 16, 64), torch.randint(0, 7, (2, 16, 64)), torch.randn(2, 16, 64), torch.randint(0, 7, (2, 16, 64))",
        ),
    ),
    "a list of tuples, as the annotation says": (
        "from typing import List, Tuple\nclass Net(nn.Module):\n def __init__(self, dimensions: List[Tuple[int, int]], repeat=1):\n"
        "  super().__init__()\n  self.stages = nn.ModuleList(nn.Linear(w, w) for n, w in dimensions for _ in range(n * repeat))\n"
        " def forward(self, x):\n  for stage in self.stages:\n   x = stage(x)\n  return x\n",
        ("[(2, 8), (2, 8)]", "torch.randn(2, 16, 8)"),
    ),
    "a list of tuples, as the code takes it apart": (
        "class Net(nn.Module):\n def __init__(self, spec):\n  super().__init__()\n"
        "  self.stages = nn.ModuleList(nn.Linear(w, w) for n, w in spec for _ in range(n))\n"
        " def forward(self, x):\n  for stage in self.stages:\n   x = stage(x)\n  return x\n",
        ("[(2, 8), (2, 8)]", "torch.randn(2, 16, 8)"),
    ),
    "what a class hands on but sets itself": (
        "class Base(nn.Module):\n def __init__(self, sizes, act=nn.ReLU, *, width=4):\n  super().__init__()\n"
        "  self.fc, self.act = nn.Linear(sizes[0], width), act()\n def forward(self, x):\n  return self.act(self.fc(x))\n"
        "class Net(Base):\n def __init__(self, **kwargs):\n  super().__init__([6], nn.Tanh, **kwargs)\n",
        ("", "torch.randn(2, 16, 6)"),
    ),
    "images that are halved and doubled again": (
        "class Net(nn.Module):\n def __init__(self, c_in=1):\n  super().__init__()\n"
        "  self.a, self.b = nn.Conv3d(c_in, 4, 3, padding=1), nn.ConvTranspose3d(4, 4, 2, stride=2)\n"
        " def forward(self, x):\n  x = self.a(x)\n  y = nn.functional.max_pool3d(x, 2)\n  z = nn.functional.max_pool3d(y, 8)\n"
        "  return torch.cat([x, self.b(y)], 1).sum((2, 3, 4)) + z.mean()\n",
        ("", "torch.randn(2, 1, 32, 32, 32)"),
    ),
    "two images of which one is doubled and both are joined": (
        "class Up(nn.Module):\n def __init__(self, c_in, c_out):\n  super().__init__()\n"
        "  self.up, self.conv = nn.ConvTranspose2d(c_in, c_out, 2, stride=2), nn.Conv2d(c_in, c_out, 3, padding=1)\n"
        " def forward(self, x1, x2):\n  return self.conv(torch.cat([x2, self.up(x1)], dim=1))\n",
        ("128, 64", "torch.randn(2, 128, 32, 32), torch.randn(2, 64, 64, 64)"),
    ),
    "as many numbers as the code refuses others": (
        "class Part(nn.Module):\n def __init__(self, sizes):\n  super().__init__()\n  self.n = len(list(sizes))\n"
        "  if self.n not in (2, 3):\n   raise NotImplementedError('wrong number of axes')\n"
        "class Net(nn.Module):\n def __init__(self, depths):\n  super().__init__()\n  self.part = Part(depths)\n"
        " def forward(self, x):\n  return x * self.part.n\n",
        ("[1, 1]", "torch.randn(2, 16, 64)"),
    ),
    "as many axes as a message spells out": (
        "class Net(nn.Module):\n def forward(self, q, k):\n  if q.ndim != 5 or k.ndim != 5:\n"
        "   raise ValueError('q and k must have shape [B, D, H, W, heads]')\n  return q * k\n",
        ("", "torch.randn(2, 8, 8, 16, 64), torch.randn(2, 8, 8, 16, 64)"),
    ),
    "convolution of few channels": (
        "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.c = nn.Conv2d(5, 6, 3)\n"
        " def forward(self, x):\n  return self.c(x)\n",
        ("", "torch.randn(2, 5, 32, 32)"),
    ),
    "embedding, with a configuration": (
        "@dataclass\nclass Config:\n vocab_size: int = 50257\n n_embd: int = 768\n n_head: int = 12\n"
        "class Net(nn.Module):\n def __init__(self, config):\n  super().__init__()\n"
        "  self.e = nn.Embedding(config.vocab_size, config.n_embd)\n"
        " def forward(self, idx, targets=None):\n  return self.e(idx), None\n",
        ("Config(vocab_size=64, n_embd=64, n_head=4)", "torch.randint(0, 64, (2, 16))"),
    ),
    "annotated configuration with required fields": (
        "@dataclass\nclass Options:\n dim: int\n bias: bool\n"
        "class Net(nn.Module):\n def __init__(self, options: Options):\n  super().__init__()\n"
        "  self.fc = nn.Linear(options.dim, 3, bias=options.bias)\n def forward(self, x):\n  return self.fc(x)\n",
        ("Options(dim=64, bias=True)", "torch.randn(2, 16, 64)"),
    ),
    "sizes that a class further inside goes through": (
        "class Inner(nn.Module):\n def __init__(self, width, channels, kernel):\n  super().__init__()\n"
        "  self.layers = nn.ModuleList([nn.Linear(width if i == 0 else channels[i - 1], channels[i]) for i in range(len(channels))])\n"
        " def forward(self, x):\n  for layer in self.layers:\n   x = layer(x)\n  return x\n"
        "class Net(nn.Module):\n def __init__(self, width, out, hidden_channels, kernel):\n  super().__init__()\n"
        "  self.inner = Inner(width, hidden_channels, kernel)\n  self.fc = nn.Linear(hidden_channels[-1], out)\n"
        " def forward(self, x):\n  return self.fc(self.inner(x))\n",
        ("32, 64, [64, 64], 3", "torch.randn(2, 16, 32)"),
    ),
    "inner module": (
        "class Net(nn.Module):\n def __init__(self, dim, fn):\n  super().__init__()\n  self.norm, self.fn = nn.LayerNorm(dim), fn\n"
        " def forward(self, x):\n  return self.fn(self.norm(x))\n",
        ("64, torch.nn.Tanh()", "torch.randn(2, 16, 64)"),
    ),
    "query, key and value": (
        "class Net(nn.Module):\n def __init__(self, dim):\n  super().__init__()\n  self.q, self.w = nn.Linear(dim, dim), nn.Linear(dim, dim)\n"
        " def forward(self, q, k, v):\n  return self.q(q) @ self.w(k).transpose(1, 2) @ v\n",
        ("64", "torch.randn(2, 16, 64), torch.randn(2, 16, 64), torch.randn(2, 16, 64)"),
    ),
    "a device": (
        "class Net(nn.Module):\n def __init__(self, dim, device):\n  super().__init__()\n  self.t = torch.zeros(dim, device=device)\n"
        "  self.fc = nn.Linear(dim, dim)\n def forward(self, x):\n  return self.fc(x) + self.t.to(x.device)\n",
        ("64, 'cpu'", "torch.randn(2, 16, 64)"),
    ),
    "labels that an embedding looks up": (
        "class Net(nn.Module):\n def __init__(self, dim, num_classes):\n  super().__init__()\n  self.norm = nn.BatchNorm2d(dim, affine=False)\n"
        "  self.embed = nn.Embedding(num_classes, dim)\n def forward(self, x, y):\n  return self.norm(x) * self.embed(y)[:, :, None, None]\n",
        ("8, 8", "torch.randn(2, 8, 16, 16), torch.randint(0, 8, (2,))"),
    ),
    "a list of tensors": (
        "class Net(nn.Module):\n def __init__(self, dims):\n  super().__init__()\n  assert isinstance(dims, list)\n"
        "  self.layers = nn.ModuleList([nn.Linear(d, 8) for d in dims])\n"
        " def forward(self, xs):\n  return sum(self.layers[i](xs[i]) for i in range(len(self.layers)))\n",
        ("[64, 64]", "[torch.randn(2, 16, 64), torch.randn(2, 16, 64)]"),
    ),
    "a mask that hides where it is set": (
        "class Net(nn.Module):\n def __init__(self, dim):\n  super().__init__()\n  self.fc = nn.Linear(dim, dim)\n def forward(self, x, mask):\n"
        "  s = self.fc(x) @ x.transpose(1, 2)\n  return s.masked_fill(mask.view(mask.shape).unsqueeze(1), -float('inf')).softmax(-1)\n",
        ("64", "torch.randn(2, 16, 64), torch.zeros((2, 16), dtype=torch.bool)"),
    ),
    "features beside token ids": (
        "class Net(nn.Module):\n def __init__(self, vocab_size, dim):\n  super().__init__()\n  self.e = nn.Embedding(vocab_size, dim)\n"
        "  self.fc = nn.Linear(dim, dim)\n def forward(self, trg, enc_src):\n  return self.e(trg) @ self.fc(enc_src).transpose(1, 2)\n",
        ("64, 64", "torch.randint(0, 64, (2, 16)), torch.randn(2, 16, 64)"),
    ),
    "objects in a configuration": (
        "class Net(nn.Module):\n def __init__(self, config):\n  super().__init__()\n  name, model = config['name'], config['model']\n"
        "  self.fc = self._made(model)\n def _made(self, part):\n  return nn.Linear(part['dim'], part['out_dim'])\n def forward(self, x):\n  return self.fc(x)\n",
        ("{'name': 'a', 'model': {'dim': 64, 'out_dim': 64}}", "torch.randn(2, 16, 64)"),
    ),
    "a configuration that is asked what it has": (
        "class Net(nn.Module):\n def __init__(self, args):\n  super().__init__()\n  if 'rate' not in args:\n   args.rate = 0.5\n"
        "  self.fc, self.rate = nn.Linear(args.dim, args.dim), args.rate\n def forward(self, x):\n  return self.fc(x) * self.rate\n",
        ("argparse.Namespace(rate=0.5, dim=64)", "torch.randn(2, 16, 64)"),
    ),
    "a class that a method constructs": (
        "class Part(nn.Module):\n def __init__(self, dim, scale=1):\n  super().__init__()\n  self.fc = nn.Linear(dim, dim)\n"
        " def forward(self, x, y):\n  return self.fc(x) + y\n"
        "class Net(nn.Module):\n def __init__(self, block, dim):\n  super().__init__()\n  self.part = self._make(block, dim)\n"
        " def _make(self, block, dim):\n  return block(dim, scale=2)\n def forward(self, x, y):\n  return self.part(x, y)\n",
        ("Part, 64", "torch.randn(2, 16, 64), torch.randn(2, 16, 64)"),
    ),
    "a module whose attribute is read": (
        "class Part(nn.Module):\n def __init__(self, dim):\n  super().__init__()\n  self.dim, self.fc = dim, nn.Linear(dim, dim)\n"
        " def forward(self, x):\n  return self.fc(x)\n"
        "class Net(nn.Module):\n def __init__(self, net):\n  super().__init__()\n  self.net, self.scale = net, net.dim\n"
        " def forward(self, x):\n  return self.net(x) * self.scale\n",
        ("Part(dim=64)", "torch.randn(2, 16, 64)"),
    ),
    "a smaller image where that runs too": (
        "class Net(nn.Module):\n def __init__(self, img_size=256):\n  super().__init__()\n  self.c = nn.Conv2d(3, 4, 3)\n"
        " def forward(self, x):\n  return self.c(x)\n",
        ("", "torch.randn(2, 3, 32, 32)"),
    ),
    "words that must fit the sizes beside them": (
        "class Net(nn.Module):\n def __init__(self, args):\n  super().__init__()\n  size = 5 if args.data == 'small' else 28\n"
        "  self.fc, self.out = nn.Linear(784, size), nn.Linear(28, args.width)\n def forward(self, x):\n  return self.out(self.fc(x))\n",
        ("types.SimpleNamespace(data='other', width=32)", "torch.randn(2, 16, 784)"),
    ),
    "a depth that leaves no remainder": (
        "class Net(nn.Module):\n def __init__(self, depth, num_classes):\n  super().__init__()\n  assert (depth - 4) % 6 == 0\n"
        "  self.layers = nn.Sequential(*[nn.Linear(8, 8) for _ in range((depth - 4) // 6)], nn.Linear(8, num_classes))\n"
        " def forward(self, x):\n  return self.layers(x)\n",
        ("10, 64", "torch.randn(2, 16, 8)"),
    ),
    "narrower convolutions of large images": (
        "class Net(nn.Module):\n def __init__(self, ch_in, ch_out, groups):\n  super().__init__()\n  self.c = nn.Conv2d(ch_in, ch_out, 3)\n"
        "  self.norm = nn.GroupNorm(16, ch_out)\n def forward(self, x):\n  return self.norm(self.c(x))\n",
        ("16, 16, 1", "torch.randn(2, 16, 32, 32)"),
    ),
    "a list of kernels": (
        "class Net(nn.Module):\n def __init__(self, dim, kernel_sizes):\n  super().__init__()\n"
        "  self.a, self.b = nn.Conv1d(dim, dim, kernel_sizes[0]), nn.Conv1d(dim, dim, kernel_sizes[2])\n"
        " def forward(self, x):\n  return self.b(self.a(x))\n",
        ("64, [3, 3, 3]", "torch.randn(2, 64, 32)"),
    ),
    "pretrained embeddings": (
        "class Net(nn.Module):\n def __init__(self, vocab_size, dim, weights):\n  super().__init__()\n  self.e = nn.Embedding(vocab_size, dim)\n"
        "  self.e.weight = nn.Parameter(weights, requires_grad=False)\n def forward(self, x):\n  return self.e(x) * 2.0\n",
        ("64, 64, torch.linspace(0.1, 1, 4096).reshape(64, 64)", "torch.randint(0, 64, (2, 16))"),
    ),
    "a mask that is no option": (
        "class Net(nn.Module):\n def __init__(self, dim=8):\n  super().__init__()\n  self.c = nn.Linear(dim, dim)\n"
        " def forward(self, x, mask):\n  y = self.c(x)\n  return y.masked_fill(mask.unsqueeze(-1), 0)\n",
        ("", "torch.randn(2, 16, 8), torch.ones((2, 16), dtype=torch.bool)"),
    ),
    "two inputs that are joined": (
        "class Net(nn.Module):\n def __init__(self, channels=3, classes=10):\n  super().__init__()\n  self.c = nn.Conv2d(channels + classes, 8, 3)\n"
        " def forward(self, x, label):\n  return self.c(torch.cat([x, label], 1))\n",
        ("", "torch.randn(2, 3, 32, 32), torch.randn(2, 10, 32, 32)"),
    ),
    "an image and labels that are joined to it": (
        "class Net(nn.Module):\n def __init__(self, width=8, y_dim=5):\n  super().__init__()\n  self.c = nn.Conv2d(3 + y_dim, width, 3)\n"
        " def forward(self, x, y):\n  y = y.view(y.size(0), y.size(1), 1, 1).repeat(1, 1, x.size(2), x.size(3))\n"
        "  return self.c(torch.cat([x, y], dim=1))\n",
        ("", "torch.randn(2, 3, 32, 32), torch.randn(2, 5)"),
    ),
    "channels that space is folded into": (
        "class Net(nn.Module):\n def __init__(self, c_in):\n  super().__init__()\n  self.mean = nn.Parameter(torch.zeros(1, 4 * c_in, 1, 1))\n"
        " def forward(self, x):\n  n, c, h, w = x.shape\n  y = x.view(n, c, h // 2, 2, w // 2, 2).permute(0, 1, 3, 5, 2, 4)\n"
        "  y = y.reshape(n, c * 4, h // 2, w // 2)\n  with torch.no_grad():\n   self.mean.data.copy_(y.mean((0, 2, 3), keepdim=True))\n"
        "  return y - self.mean\n",
        ("8", "torch.randn(2, 8, 16, 16)"),
    ),
    "a graph in a tuple": (
        "class Net(nn.Module):\n def __init__(self, dim):\n  super().__init__()\n  self.fc = nn.Linear(dim, dim)\n"
        " def forward(self, data):\n  features, edge_index = data\n  assert features.dim() == 2\n"
        "  return self.fc(features).index_select(0, edge_index[0])\n",
        ("64", "(torch.randn(2, 64), torch.randint(0, 2, (2, 4)))"),
    ),
    "a loss of classes in images": (
        "class Net(nn.Module):\n def __init__(self, ignore_index=255):\n  super().__init__()\n"
        "  self.ce = nn.CrossEntropyLoss(ignore_index=ignore_index)\n"
        " def forward(self, output, target):\n  assert target.dim() == 3\n  return self.ce(output, target)\n",
        ("", "torch.randn(2, 4, 16, 16), torch.randint(0, 4, (2, 16, 16))"),
    ),
    "lists in a list that the constructor takes apart": (
        "class Encoder(nn.Module):\n def __init__(self, dims):\n  super().__init__()\n  [a, hidden, b] = dims\n"
        "  sizes = [a, *hidden, b]\n  self.layers = nn.ModuleList([nn.Linear(m, n) for m, n in zip(sizes, sizes[1:])])\n"
        " def forward(self, x):\n  for layer in self.layers:\n   x = layer(x)\n  return x\n"
        "class Net(nn.Module):\n def __init__(self, dims):\n  super().__init__()\n  x_dim, self.y_dim, inner = dims\n"
        "  self.encoder = Encoder([x_dim + self.y_dim, inner, x_dim])\n def forward(self, x, y):\n  return self.encoder(torch.cat([x, y], -1))\n",
        ("[64, 64, [64, 64]]", "torch.randn(2, 16, 64), torch.randn(2, 16, 64)"),
    ),
    "a trained model whose parts are used": (
        "class Auto(nn.Module):\n def __init__(self, dims):\n  super().__init__()\n  a, self.code = dims\n  self.encode = nn.Linear(a, self.code)\n"
        " def forward(self, x):\n  return self.encode(x)\n"
        "class Net(nn.Module):\n def __init__(self, features):\n  super().__init__()\n  self.fc, self.features = nn.Linear(features.code, 5), features\n"
        "  for p in self.features.parameters():\n   p.requires_grad = False\n def forward(self, x):\n  return self.fc(self.features.encode(x))\n",
        ("Auto(dims=[64, 64])", "torch.randn(2, 16, 64)"),
    ),
    "numbers between zero and one": (
        "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(5, 5)\n"
        " def forward(self, x):\n  return nn.functional.binary_cross_entropy(self.fc(x).sigmoid(), x)\n",
        ("", "torch.rand(2, 16, 5)"),
    ),
    "places and states that the documentation tells the sizes of": (
        "class Net(nn.Module):\n def __init__(self, patch, hidden_size):\n  super().__init__()\n"
        "  self.size, self.fc, self.h = 8, nn.Linear(64, hidden_size), nn.Linear(hidden_size, hidden_size)\n"
        " def forward(self, x, l, before):\n"
        "  '''x: a tensor of shape (B, C, H, W)\n  l: a tensor of shape (B, 2), with coordinates in the range [-1, 1]\n  before: (batch, hidden_size).'''\n"
        "  at = (0.5 * (l + 1) * (x.shape[-1] - self.size)).long()\n"
        "  cut = [x[i, :, at[i, 1] : at[i, 1] + 8, at[i, 0] : at[i, 0] + 8] for i in range(x.shape[0])]\n"
        "  return self.fc(torch.stack(cut).flatten(1)) + self.h(before)\n",
        ("8, 64", "torch.randn(2, 1, 32, 32), torch.rand(2, 2), torch.randn(2, 64)"),
    ),
    "a norm beside convolutions": (
        "class Net(nn.Module):\n def __init__(self, dim, norm_layer):\n  super().__init__()\n"
        "  self.c, self.norm = nn.Conv2d(dim, dim, 3), norm_layer(dim)\n def forward(self, x):\n  return self.norm(self.c(x))\n",
        ("8, torch.nn.BatchNorm2d", "torch.randn(2, 8, 32, 32)"),
    ),
    "a class beside it in a script": (
        "import not_there_at_all\nclass Part(nn.Module):\n def __init__(self, dim):\n  super().__init__()\n  self.fc = nn.Linear(dim, dim)\n"
        " def forward(self, x):\n  return self.fc(x)\n"
        "class Net(nn.Module):\n def __init__(self, block, dim):\n  super().__init__()\n  self.part = block(dim)\n"
        " def forward(self, x):\n  return self.part(x)\n",
        ("Part, 64", "torch.randn(2, 16, 64)"),
    ),
    "second input and mask": (
        "class Net(nn.Module):\n def __init__(self, dim):\n  super().__init__()\n  self.q = nn.Linear(dim, dim)\n"
        " def forward(self, x, context, mask, *, t):\n  return self.q(x) @ context.transpose(1, 2) + t[:, None, None]\n",
        ("64", "torch.randn(2, 16, 64), torch.randn(2, 16, 64), None, t=torch.rand(2)"),
    ),
    "sizes that must agree, by an assertion": (
        "class Net(nn.Module):\n def __init__(self, dim, groups):\n  super().__init__()\n  assert dim % 3 == 0 and groups == dim // 3\n"
        "  self.fc = nn.Linear(dim, groups)\n def forward(self, x):\n  return self.fc(x)\n",
        ("3, 1", "torch.randn(2, 16, 3)"),
    ),
    "several tensors in a tuple": (
        "class Net(nn.Module):\n def forward(self, inputs):\n  a, b, mask = inputs\n  return (a + b) * (~mask).float()\n",
        ("", "(torch.randn(2, 16, 64), torch.randn(2, 16, 64), torch.ones((2, 16, 64), dtype=torch.bool))"),
    ),
    "prediction and target that are complex": (
        "class Net(nn.Module):\n def forward(self, x, target):\n  return (x.imag - target.imag).abs().mean()\n",
        ("", "torch.randn(2, 16, 64, dtype=torch.complex64), torch.randn(2, 16, 64, dtype=torch.complex64)"),
    ),
    "arguments handed on to a base": (
        "class Net(nn.Conv2d):\n def __init__(self, *args, **kwargs):\n  super().__init__(*args, **kwargs)\n",
        ("8, 8, 3", "torch.randn(2, 8, 32, 32)"),
    ),
    "configuration read by name": (
        "class Net(nn.Module):\n def __init__(self, config):\n  super().__init__()\n"
        "  self.fc = nn.Linear(config['dim'], config.get('n_classes', 3))\n def forward(self, x):\n  return self.fc(x)\n",
        ("{'dim': 64, 'n_classes': 64}", "torch.randn(2, 16, 64)"),
    ),
    "feature map of a given size": (
        "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.c, self.fc = nn.Conv2d(3, 4, 1), nn.Linear(4 * 28 * 28, 5)\n"
        " def forward(self, x):\n  return self.fc(self.c(x).flatten(1))\n",
        ("", "torch.randn(2, 3, 28, 28)"),
    ),
    "layer of a class that the constructor asks for": (
        "class Net(nn.Module):\n def __init__(self, base, rank=2):\n  super().__init__()\n"
        "  if not isinstance(base, (nn.Conv1d, nn.Conv2d)):\n   raise TypeError('no convolution')\n"
        "  self.base = base\n def forward(self, x):\n  return self.base(x)\n",
        ("torch.nn.Conv1d(64, 64, 3, padding=1)", "torch.randn(2, 64, 32)"),
    ),
    "optional argument that the call needs": (
        "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(3, 64)\n"
        " def forward(self, x, beta=None):\n  return x * self.fc(beta)[:, None]\n",
        ("", "torch.randn(2, 16, 64), beta=torch.randn(2, 16, 3)"),
    ),
    "names that only layers of torch explain": (
        "class Inner(nn.Module):\n def __init__(self, width, k, s):\n  super().__init__()\n"
        "  self.c = nn.ConvTranspose2d(int(width), int(width), kernel_size=k, stride=s, padding=1)\n def forward(self, x):\n  return self.c(x)\n"
        "class Net(nn.Module):\n def __init__(self, width, k_size, step):\n  super().__init__()\n"
        "  self.inner = Inner(width, k_size, s=step)\n def forward(self, x):\n  return self.inner(x)\n",
        ("32, 3, 1", "torch.randn(2, 32, 32, 32)"),
    ),
    "images of the size that the constructor names": (
        "class Net(nn.Module):\n def __init__(self, img_size=24, in_chans=3):\n  super().__init__()\n"
        "  self.cut, self.fc = nn.Unfold(4, stride=4), nn.Linear(in_chans * 16, 8)\n"
        "  self.places = nn.Parameter(torch.zeros(1, (img_size // 4) ** 2, 8))\n"
        " def forward(self, x):\n  return self.fc(self.cut(x).transpose(1, 2)) + self.places\n",
        ("", "torch.randn(2, 3, 24, 24)"),
    ),
    "windows that do not divide the image": (
        "def windows(x, size):\n b, h, w, c = x.shape\n return x.view(b, h // size, size, w // size, size, c)\n"
        "class Net(nn.Module):\n def __init__(self, img_size=64, in_chans=3, dim=96, window_size=7):\n  super().__init__()\n"
        "  self.size, self.fc = window_size, nn.Linear(in_chans, dim)\n"
        "  self.mask = windows(torch.zeros(1, img_size, img_size, 1), window_size)\n"
        " def forward(self, x):\n  return windows(self.fc(x.permute(0, 2, 3, 1)), self.size)\n",
        ("window_size=8", "torch.randn(2, 3, 64, 64)"),
    ),
    "configuration that is handed on": (
        "class Decoder(nn.Module):\n def __init__(self, hp):\n  super().__init__()\n  self.hp = hp\n"
        "  if hp.kind == 'wide':\n   self.fc = nn.Linear(hp.dim, hp.dim)\n def forward(self, x):\n  return self.fc(x) * self.hp.scale_by\n"
        "class Net(nn.Module):\n def __init__(self, configs):\n  super().__init__()\n  self.decoder = Decoder(configs)\n"
        " def forward(self, x):\n  return self.decoder(x)\n",
        ("types.SimpleNamespace(kind='wide', scale_by=2, dim=64)", "torch.randn(2, 16, 64)"),
    ),
    "word that the call is compared with": (
        "class Net(nn.Module):\n def __init__(self, dim):\n  super().__init__()\n  self.fc = nn.Linear(dim, dim)\n"
        " def forward(self, x, mode):\n  if mode == 'norm':\n   return self.fc(x)\n  raise NotImplementedError\n",
        ("64", "torch.randn(2, 16, 64), 'norm'"),
    ),
    "trial that would take all memory": (
        "class Net(nn.Module):\n def __init__(self, size):\n  super().__init__()\n"
        "  self.w = nn.Parameter(torch.zeros(size ** 6)) if size > 16 else nn.Parameter(torch.zeros(4))\n"
        " def forward(self, x):\n  return x * self.w[0]\n",
        ("4", "torch.randn(2, 16, 64)"),
    ),
    "class that shares its name with a layer": (
        "class LayerNorm(nn.Module):\n def __init__(self, ndim, bias):\n  super().__init__()\n"
        "  self.weight = nn.Parameter(torch.ones(ndim))\n def forward(self, x):\n  return x * self.weight\n",
        ("64, True", "torch.randn(2, 16, 64)"),
    ),
    "constructor that hands on all that it takes": (
        "class Part(nn.Module):\n def __init__(self, width, bias):\n  super().__init__()\n  self.fc = nn.Linear(width, width, bias=bias)\n"
        " def forward(self, x):\n  return self.fc(x)\n"
        "class Net(nn.Module):\n def __init__(self, *args, **kwargs):\n  super().__init__()\n"
        "  self.a, self.b = Part(*args, **kwargs), Part(*args, **kwargs)\n def forward(self, x):\n  return self.a(x) + self.b(x)\n",
        ("width=32, bias=True", "torch.randn(2, 16, 32)"),
    ),
    "a GPU that is not there, found after some trials": (
        "class Net(nn.Module):\n def __init__(self, size):\n  super().__init__()\n  assert size == 3\n  self.fc = nn.Linear(3, 3)\n"
        " def forward(self, x):\n  return self.fc(x) + torch.arange(3, device=torch.device('cuda'))\n",
        ("3", "torch.randn(2, 16, 3)"),
    ),
    "objects in a list, and tensors by their names": (
        "import dataclasses, typing\n@dataclasses.dataclass\nclass Signal:\n name: str\n width: int\n"
        "class Net(nn.Module):\n def __init__(self, signals: typing.Iterable[Signal], dim=64):\n  super().__init__()\n"
        "  self.signals = {s.name: s for s in signals}\n  self.fc = nn.ModuleDict({s.name: nn.Linear(s.width, dim) for s in signals})\n"
        " def forward(self, inputs: typing.Dict[str, torch.Tensor]):\n"
        "  return sum(self.fc[name](x) for name, x in sorted(inputs.items()))\n",
        ("[Signal(name='a', width=32), Signal(name='b', width=32)]", "{'a': torch.randn(2, 16, 32), 'b': torch.randn(2, 16, 32)}"),
    ),
    "objects in a list by what is read of them": (
        "class Stage:\n def __init__(self, width, repeats):\n  self.width, self.repeats = width, repeats\n"
        "class Net(nn.Module):\n def __init__(self, stages):\n  super().__init__()\n"
        "  self.parts = nn.ModuleList(nn.Linear(64, s.width) for s in stages for _ in range(s.repeats))\n"
        " def forward(self, x):\n  for part in self.parts:\n   x = part(x)\n  return x\n",
        ("[Stage(width=32, repeats=1)]", "torch.randn(2, 16, 64)"),
    ),
    "images of which nothing is left without padding": (
        "class Net(nn.Module):\n def __init__(self, padding=0):\n  super().__init__()\n"
        "  self.convs = nn.ModuleList(nn.Conv2d(1, 1, 3, padding=padding) for _ in range(20))\n"
        " def forward(self, x):\n  y = x\n  for at, conv in enumerate(self.convs):\n   y = conv(y)\n   if at % 5 == 4:\n    y = nn.functional.max_pool2d(y, 2)\n"
        "  return y\n",
        ("padding=1", "torch.randn(2, 1, 32, 32)"),
    ),
    "constructor of as many modules as there are": (
        "class Net(nn.Sequential):\n def __init__(self, *branches):\n  super().__init__(*branches)\n"
        " def forward(self, x):\n  return tuple(branch(x) for branch in self)\n",
        ("torch.nn.Linear(64, 64), torch.nn.Tanh()", "torch.randn(2, 16, 64)"),
    ),
    "image of as many patches as there are positions": (
        "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.patches = nn.Conv2d(3, 8, 16, stride=16)\n"
        "  self.positions = nn.Parameter(torch.zeros(1, 37, 8))\n  self.first = nn.Parameter(torch.zeros(1, 1, 8))\n"
        " def forward(self, x):\n  tokens = self.patches(x).flatten(2).transpose(1, 2)\n"
        "  return torch.cat([self.first.expand(len(x), -1, -1), tokens], dim=1) + self.positions\n",
        ("", "torch.randn(2, 3, 96, 96)"),
    ),
    "image of which a layer takes as much as is left of a smaller one": (
        "class Net(nn.Module):\n def __init__(self, c_in=1):\n  super().__init__()\n"
        "  self.a, self.b = nn.Conv2d(c_in, 8, 9), nn.Conv2d(8, 8, 9, stride=2)\n  self.fc = nn.Linear(8 * 6 * 6, 5)\n"
        " def forward(self, x):\n  return self.fc(self.b(self.a(x)).flatten(1))\n",
        ("", "torch.randn(2, 1, 28, 28)"),
    ),
    "image of as many places as there are weights": (
        "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n"
        "  self.a, self.b = nn.Conv2d(4, 8, 9), nn.Conv2d(8, 8, 9, stride=2)\n  self.w = nn.Parameter(torch.ones(2, 1, 8 * 6 * 6))\n"
        " def forward(self, x):\n  return self.b(self.a(x)).flatten(1) * self.w\n",
        ("", "torch.randn(2, 4, 28, 28)"),
    ),
    "numbers in the range that an error names": (
        "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.conv = nn.Conv2d(3, 8, 3)\n"
        " def forward(self, x):\n  if x.min() < 0 or x.max() > 1:\n   raise ValueError('Expected x in [0, 1], got {}'.format(x.max()))\n"
        "  return self.conv(x)\n",
        ("", "torch.rand(2, 3, 32, 32)"),
    ),
    "object of a class that is known by name": (
        "class Policy(nn.Module):\n def __init__(self, width, space):\n  super().__init__()\n"
        "  if space.__class__.__name__ == 'Discrete':\n   size = space.n\n  elif type(space).__name__ in ('Box', 'Cube'):\n   size = space.shape[0]\n"
        "  else:\n   raise NotImplementedError\n  self.fc = nn.Linear(width, size)\n def forward(self, x):\n  return self.fc(x)\n",
        ("32, type('Discrete', (), {'n': 4, 'shape': (8,)})()", "torch.randn(2, 16, 32)"),
    ),
    "distribution of a class of one's own": (
        "class Fixed(torch.distributions.Categorical):\n def mode(self):\n  return self.probs.argmax(-1)\n"
        "class Head(nn.Module):\n def __init__(self, width):\n  super().__init__()\n  self.fc = nn.Linear(width, 4)\n"
        " def forward(self, x):\n  return Fixed(logits=self.fc(x))\n",
        ("32", "torch.randn(2, 16, 32)"),
    ),
    "matrix that is turned": (
        "class Net(nn.Module):\n def __init__(self, dim):\n  super().__init__()\n  self.fc = nn.Linear(dim, dim)\n"
        " def forward(self, nodes):\n  return torch.mm(self.fc(nodes), nodes.t())\n",
        ("64", "torch.randn(2, 64)"),
    ),
    "word whose default chooses a broken branch": (
        "def normal(n):\n return chi.rvs(n)\ndef zeros(n):\n return torch.zeros(n)\nclass Net(nn.Module):\n"
        " def __init__(self, dim, init='normal'):\n  super().__init__()\n  self.make = {'normal': normal, 'zeros': zeros}[init]\n"
        "  self.w = nn.Parameter(self.make(dim))\n def forward(self, x):\n  return x * self.w\n",
        ("64, init='zeros'", "torch.randn(2, 16, 64)"),
    ),
    "switch by which a constructor does without a package": (
        "class Net(nn.Module):\n def __init__(self, dim, fused=True):\n  super().__init__()\n  if fused:\n   import surely_absent\n"
        "  self.fc = nn.Linear(dim, dim)\n def forward(self, x):\n  return self.fc(x)\n",
        ("64, fused=False", "torch.randn(2, 16, 64)"),
    ),
    "switch by which a call does without a package": (
        "class Net(nn.Module):\n def __init__(self, dim, fused=True):\n  super().__init__()\n  self.fused, self.fc = fused, nn.Linear(dim, dim)\n"
        " def forward(self, x):\n  if self.fused:\n   import surely_absent\n  return self.fc(x)\n",
        ("64, fused=False", "torch.randn(2, 16, 64)"),
    ),
    "word that is looked up in capitals": (
        "SCALES = {'GAUSSIAN': 1.0, 'LAPLACE': 2.0}\nclass Net(nn.Module):\n def forward(self, x, kind):\n  kind = kind.upper()\n"
        "  if kind not in SCALES:\n   raise ValueError(f'unknown {kind}. Use one of: {list(SCALES)}')\n  return x.abs() * SCALES[kind]\n",
        ("", "torch.randn(2, 16, 64), 'GAUSSIAN'"),
    ),
    "word that an error allows, without quotes": (
        "class Net(nn.Module):\n def forward(self, x, law):\n  scales = {'gauss': 1.0, 'laplace': 2.0}\n  parts = law.strip().split('+')\n"
        "  if parts[0] not in scales:\n   raise ValueError(f'available laws are {\", \".join(scales)}')\n  return x.abs() * scales[parts[0]]\n",
        ("", "torch.randn(2, 16, 64), 'gauss'"),
    ),
    "pattern that is taken apart": (
        "class Net(nn.Module):\n def forward(self, x, pattern):\n  return x.abs().sum(len(pattern.split('-')))\n",
        ("", "torch.randn(2, 16, 64), 'relu'"),
    ),
    "dictionary of numbers by words": (
        "class Net(nn.Module):\n def each(self, index):\n  return index.items()\n"
        " def forward(self, x, index):\n  return sum(x[:, row].abs() * len(word) for word, row in self.each(index))\n",
        ("", "torch.randn(2, 16, 64), {'a': 0, 'b': 1}"),
    ),
    "dictionary that another method takes apart": (
        "class Net(nn.Module):\n def __init__(self, d):\n  super().__init__()\n"
        "  self.heads = nn.ModuleDict({'u': nn.Linear(d, d), 'v': nn.Linear(d, 3)})\n"
        " def each(self, xs):\n  return [self.heads[name](x) for name, x in xs.items()]\n"
        " def forward(self, xs):\n  return torch.cat(self.each(xs), -1)\n",
        ("64", "{'u': torch.randn(2, 16, 64), 'v': torch.randn(2, 16, 64)}"),
    ),
    "points that are joined with their neighbours": (
        "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.conv = nn.Conv2d(6, 4, 1)\n"
        " def forward(self, x):\n  x = x.view(x.size(0), -1, x.size(2))\n  return self.conv(torch.cat((x, x.roll(1, 2)), 1)[..., None])\n",
        ("", "torch.randn(2, 3, 32)"),
    ),
    "object whose class has what is read of it": (
        "@dataclass\nclass Pose:\n turn: torch.Tensor\n shift: torch.Tensor\n scale: float\n"
        "class Net(nn.Module):\n def forward(self, x, pose):\n  return (x @ pose.turn + pose.shift) * pose.scale\n",
        (
            "",
            "torch.randn(2, 3, 32, 32), Pose(turn=torch.randn(2, 3, 32, 32), shift=torch.randn(2, 3, 32, 32), scale=1.0)",
        ),
    ),
}


@pytest.mark.parametrize("name", GUESSABLE)
def test_a_guess_that_runs_is_found(name: str, repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    source, wanted = GUESSABLE[name]
    inventory = repository({"net.py": HEAD + source})
    example = infer(inventory, inventory.units[-1], sandbox, tmp_path / "guess").example
    assert example is not None
    assert (example.init, example.call) == wanted
    assert example.origin == "inference"
    assert record(inventory, [example], sandbox, tmp_path / "run").errors == {}


def test_a_metric_reads_numbers_out_of_tensors(sandbox: Sandbox, tmp_path: Path) -> None:
    metric = "def accuracy(found, wanted, threshold=0.5):\n hits = torch.sum((found > threshold) == (wanted > 0))\n"
    (tmp_path / "source").mkdir()
    (tmp_path / "source/net.py").write_text(f"import torch\n{metric} return float(hits) / float(found.size(0) * found.size(1))\n")
    inventory = scan(tmp_path / "source")
    example = infer(inventory, inventory.unit("net.py:accuracy"), sandbox, tmp_path / "guess").example
    assert example is not None and example.call.count("torch.") == 2
    assert record(inventory, [example], sandbox, tmp_path / "run").errors == {}


def test_numbers_of_what_a_function_makes_beside_words_that_it_refuses(sandbox: Sandbox, tmp_path: Path) -> None:
    prior = "def prior(kind, dim):\n if kind == 'flat':\n  low = -torch.ones(dim)\n else:\n  raise NotImplementedError\n return low * 2\n"
    (tmp_path / "source").mkdir()
    (tmp_path / "source/net.py").write_text(f"import torch\n{prior}")
    inventory = scan(tmp_path / "source")
    example = infer(inventory, inventory.unit("net.py:prior"), sandbox, tmp_path / "guess").example
    assert example is not None and example.call == "'flat', 8"


PICKY = "if {}:\n   raise ValueError('unlike the repository')\n  self.fc = nn.Linear(7, 7)\n def forward(self, x):\n  return self.fc(x)\n"
SETTINGS = {
    "arguments of a command line": (
        "class Net(nn.Module):\n def __init__(self, steps, mode):\n  super().__init__()\n  "
        + PICKY.format("steps != 96 or mode != 'slow'"),
        "train.py",
        "import argparse\nfrom net import Net\ndef main():\n parser = argparse.ArgumentParser()\n parser.add_argument('--mode', default='slow')\n"
        " parser.add_argument('-s', '--num-steps', type=int, default=96)\n args = parser.parse_args()\n net = Net(args.num_steps, args.mode)\n",
        "96, 'slow'",
    ),
    "what is read of a command line": (
        "class Net(nn.Module):\n def __init__(self, configs):\n  super().__init__()\n  "
        + PICKY.format("configs.kind != 'slow' or configs.deep or configs.length != 12"),
        "train.py",
        "import argparse\nfrom net import Net\nparser = argparse.ArgumentParser()\nparser.add_argument('--kind', choices=['slow', 'fast'])\n"
        "parser.add_argument('--deep', action='store_true')\nparser.add_argument('--length', type=int, default=96)\n",
        "types.SimpleNamespace(deep=False, kind='slow', length=12)",
    ),
    "a configuration file by parameters": (
        "class Net(nn.Module):\n def __init__(self, n_steps, inner):\n  super().__init__()\n  " + PICKY.format("inner['kind'] != 'slow'"),
        "configs/small.json",
        '{"seed": 1, "net": {"n_steps": 3, "inner": {"kind": "slow"}}}',
        "3, {'kind': 'slow'}",
    ),
    "what a program assigns to its configuration": (
        "class Net(nn.Module):\n def __init__(self, args):\n  super().__init__()\n  " + PICKY.format("args.levels != 4"),
        "train.py",
        "from net import Net\ndef make(args):\n args.levels = 4\n return Net(args)\n",
        "types.SimpleNamespace(levels=4)",
    ),
    "a tree of settings": (
        "class Net(nn.Module):\n def __init__(self, cfg):\n  super().__init__()\n  " + PICKY.format("cfg.MODEL.LEVELS != 5"),
        "config.py",
        "from yacs.config import CfgNode\n_C = CfgNode()\n_C.MODEL = CfgNode()\n_C.MODEL.LEVELS = 5\n",
        "types.SimpleNamespace(MODEL=types.SimpleNamespace(LEVELS=5))",
    ),
    "constants of a configuration module": (
        "class Net(nn.Module):\n def __init__(self, levels):\n  super().__init__()\n  " + PICKY.format("levels != 5"),
        "config.py",
        "levels = 5\n",
        "5",
    ),
    "options that the program makes into something else": (
        "class Net(nn.Module):\n def __init__(self, args):\n  super().__init__()\n  "
        + PICKY.format("args.sizes != [3, 5] or args.rate != (0.5, 1)"),
        "train.py",
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('-sizes', type=str, default='3,5')\n"
        "parser.add_argument('-rate', default='(0.5, 1)')\nargs = parser.parse_args()\nargs.sizes = [int(k) for k in args.sizes.split(',')]\n"
        "args.rate = eval(args.rate)\n",
        "types.SimpleNamespace(sizes=[3, 5], rate=(0.5, 1))",
    ),
    "a class of settings, of which None is what the user says": (
        "class Net(nn.Module):\n def __init__(self, config):\n  super().__init__()\n  "
        + PICKY.format("config.levels is None or config.kind != 'slow'"),
        "train.py",
        "import absent_package\nclass NetConfig:\n levels: int = None\n kind: str = 'slow'\n",
        "types.SimpleNamespace(levels=2, kind='slow')",
    ),
    "a table that a script writes out": (
        "class Net(nn.Module):\n def __init__(self, levels, widths):\n  super().__init__()\n  "
        + PICKY.format("levels != len(widths) - 1 or widths[0] != 7"),
        "train.py",
        "from net import Net\nWIDTH = 7\ndef main():\n config = {'levels': 2, 'widths': [WIDTH, 7, 7], 'path': DATA}\n return Net(config['levels'], config['widths'])\n",
        "2, [7, 7, 7]",
    ),
    "one of several tables, by names that are no words": (
        "class Net(nn.Module):\n def __init__(self, config):\n  super().__init__()\n  " + PICKY.format("config['levels'] != (4, 3)"),
        "train.py",
        "import absent_package\n_configs = {Kind.SMALL.value: dict(levels=(4, 3)), Kind.LARGE.value: dict(levels=(8, 6))}\n",
        "{'levels': (4, 3)}",
    ),
    "a configuration file by attributes": (
        "class Net(nn.Module):\n def __init__(self, config):\n  super().__init__()\n  " + PICKY.format("config.net.kind != 'slow'"),
        "small.json",
        '{"seed": 1, "net": {"kind": "slow"}}',
        "types.SimpleNamespace(net=types.SimpleNamespace(kind='slow'))",
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_settings_of_the_repository_are_tried(name: str, repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    source, path, text, wanted = SETTINGS[name]
    inventory = repository({"net.py": HEAD + source, path: text})
    example = infer(inventory, inventory.unit("net.py:Net"), sandbox, tmp_path / "guess").example
    assert example is not None
    assert example.init == wanted


SCRIPT = """
import argparse
from parts import Block
from net import Net
parser = argparse.ArgumentParser()
parser.add_argument("--d-model", type=int, default=512)
parser.add_argument("--n_layers", type=int, default=6)
parser.add_argument("--act", choices=["tanh", "relu"])
parser.add_argument("--seq_len", type=int, default=96)
args = parser.parse_args()
if __name__ == "__main__":
    model = Net([Block(args.d_model) for _ in range(args.n_layers)], args)
"""
PARTS = "class Block(nn.Module):\n def __init__(self, d):\n  super().__init__()\n  self.fc = nn.Linear(d, d)\n def forward(self, x, mask):\n  return self.fc(x)\n"


def test_what_the_repository_runs_with_is_tried_first(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    """Defaults of the command line, with wide layers narrowed alike; modules as a script constructs them, imported as it does."""
    source = (
        "class Net(nn.Module):\n def __init__(self, blocks, args):\n  super().__init__()\n  self.blocks = nn.ModuleList(blocks)\n"
        "  self.out, self.act = nn.Linear(args.d_model, args.seq_len), {'tanh': torch.tanh}[args.act]\n"
        " def forward(self, x):\n  for block in self.blocks:\n   x = block(x, None)\n  return self.act(self.out(x))\n"
    )
    inventory = repository({"net.py": HEAD + source, "parts.py": HEAD + PARTS, "main.py": SCRIPT})
    unit = next(unit for unit in inventory.units if unit.name == "Net")
    example = infer(inventory, unit, sandbox, tmp_path / "guess").example
    assert example is not None
    assert example.init == "[Block(64) for _ in range(2)], types.SimpleNamespace(d_model=64, seq_len=96, act='tanh')"
    assert example.call == "torch.randn(2, 16, 64)" and "from parts import Block" in example.setup
    assert record(inventory, [example], sandbox, tmp_path / "run").errors == {}


HOPELESS = {
    "never finite": "class Net(nn.Module):\n def forward(self, x):\n  return x * float('nan')\n",
    "no tensor comes out": "class Net(nn.Module):\n def forward(self, x):\n  return 3\n",
    "nothing comes out": "class Net(nn.Module):\n def __init__(self, n=4):\n  super().__init__()\n def forward(self, x):\n  x = x + 1\n",
    "always raises": "class Net(nn.Module):\n def forward(self, x):\n  raise ValueError\n",
    "constructor always raises": "class Net(nn.Module):\n def __init__(self, a):\n  raise ValueError\n def forward(self, x):\n  return x\n",
    "import fails": "import not_there_at_all\nclass Net(not_there_at_all.Module):\n def forward(self, x):\n  return x\n",
}


@pytest.mark.parametrize("name", HOPELESS)
def test_none_where_no_guess_runs(name: str, repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    inventory = repository({"net.py": HEAD + HOPELESS[name]})
    guess = infer(inventory, inventory.units[0], sandbox, tmp_path, seconds=1.0)
    assert guess.example is None
    assert guess.error
    assert (name == "nothing comes out") == ("its `forward` has no `return`" in guess.error)
    assert guess.imported == (name != "import fails")


CODERS = (
    "import torch\nfrom torch import nn\nclass PlainCoder(nn.Module):\n def __init__(self, img_size, width):\n  super().__init__()\n"
    "  self.fc = nn.Linear(img_size[-1], width)\n def forward(self, x):\n  return torch.tanh(self.fc(x)), x\n"
    "def get_coder(kind):\n return eval('{}Coder'.format(kind))\n"
)
CODED = (
    "from coders import get_coder\nKINDS = ['Plain']\n"
    "def make(kind, img_size, width):\n if kind not in KINDS:\n  raise ValueError(kind)\n coder = get_coder(kind)\n"
    " return Net(img_size, coder, width)\n"
    "class Net(nn.Module):\n def __init__(self, img_size, coder, width):\n  super().__init__()\n"
    "  if list(img_size[1:]) not in [[32, 32]]:\n   raise RuntimeError('{} sized images are not supported'.format(img_size))\n"
    "  self.coder = coder(img_size, width)\n  self.out = nn.Linear(width, 4)\n"
    " def forward(self, x):\n  code, same = self.coder(x)\n  return self.out(code), same\n"
)


def test_what_a_factory_makes_is_mended_though_other_guesses_fail_later(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    inventory = repository({"net.py": HEAD + CODED, "coders.py": CODERS})
    example = infer(inventory, inventory.unit("net.py:Net"), sandbox, tmp_path / "guess").example
    assert example is not None and example.setup == "from coders import PlainCoder"
    assert example.init.startswith("(32, 32, 32,), PlainCoder, ")


def test_a_failed_import_is_told_with_its_line(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    inventory = repository({"net.py": HEAD + HOPELESS["import fails"]})
    guess = infer(inventory, inventory.units[0], sandbox, tmp_path)
    assert guess.error == "ModuleNotFoundError: No module named 'not_there_at_all' (net.py:4)"


def test_what_was_never_called_is_no_example(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    """Where construction alone takes all the time."""
    source = "import time\nclass Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  time.sleep(0.5)\n def forward(self, x):\n  return x\n"
    inventory = repository({"net.py": HEAD + source})
    guess = infer(inventory, inventory.units[0], sandbox, tmp_path, seconds=0.1)
    assert guess.example is None and guess.nearest is not None
    assert guess.error == NOT_CALLED


TEXTS = {
    ("num_heads", ""): "4",
    ("attn_dropout", "float"): "0.0",
    ("dropout", ""): "0.0",
    ("image_size", ""): "32",
    ("depth", "int"): "2",
    ("n_layer", "int | None"): "2",
    ("eps", "float"): "1e-5",
    ("anything", "float"): "0.1",
    ("flag", "bool"): "True",
    ("use_fp16", ""): "False",
    ("use_bias", ""): "True",
    ("num_samples", "int"): "64",
    ("norm_layer", ""): "torch.nn.LayerNorm",
    ("something", "int"): "64",
    ("device", ""): "'cpu'",
    ("pretrained", ""): "False",
    ("num_levels", ""): "2",
}


@pytest.mark.parametrize(("name", "annotation"), TEXTS)
def test_names_and_annotations_say_what_to_try_first(name: str, annotation: str) -> None:
    assert parameter_texts(name, annotation, INIT_ROWS)[0] == TEXTS[name, annotation]


WITHOUT_FORWARD = (
    "class Base(nn.Module):\n def log_prob(self, x):\n  raise NotImplementedError\n"
    "class Normal(Base):\n def __init__(self, dim):\n  super().__init__()\n  self.loc = nn.Parameter(torch.zeros(dim))\n"
    " def mean(self):\n  return self.loc\n"
    " def log_prob(self, x):\n  return -((x - self.loc) ** 2).sum(-1)\n"
    "class Store(nn.Module):\n def keep(self, path):\n  self.path = path\n"
    "class Policy(nn.Module):\n def __init__(self, dim):\n  super().__init__()\n  self.fc = nn.Linear(dim, 3)\n"
    " def forward(self, x):\n  '''Not this one.'''\n  raise NotImplementedError\n def act(self, x):\n  return self.fc(x)\n"
    "class Called(nn.Module):\n def mean(self, x):\n  return x.mean()\n def forward(self, x, *, other):\n  raise KeyError('no')\n"
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Normal", ("64", "torch.randn(2, 16, 64)", "log_prob")),
        ("Policy", ("64", "torch.randn(2, 16, 64)", "act")),
        ("Base", None),
        ("Store", None),
        ("Called", None),
    ],
)
def test_a_method_is_called_in_place_of_a_module_without_forward(
    name: str, expected: tuple[str, str, str] | None, repository: Any, sandbox: Sandbox, tmp_path: Path
) -> None:
    inventory = repository({"net.py": HEAD + WITHOUT_FORWARD})
    guess = infer(inventory, inventory.unit(f"net.py:{name}"), sandbox, tmp_path / "guess")
    found = guess.example and (guess.example.init, guess.example.call, guess.example.method)
    assert found == expected, guess
    if guess.example is not None:
        assert not record(inventory, (guess.example,), sandbox, tmp_path / "run").errors


def test_a_model_that_takes_too_long_is_tried_with_few_layers_first() -> None:
    class Deep(torch.nn.Module):
        def __init__(self, dim: int, depth: int = 60, parts: int = 400) -> None:
            super().__init__()

    options = Options(Trial(Deep, sys.modules[__name__], []), [])
    first = next(smaller_models(Attempt((("dim", "64"),)), options))
    assert dict(first.init) == {"dim": "64", "depth": "2", "parts": "25"}


def test_what_takes_too_long_is_called_with_the_sizes_of_the_smaller_model() -> None:
    class Wide(torch.nn.Module):
        def __init__(self, dim: int = 256, hidden: int = 512) -> None:
            super().__init__()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x

    options = Options(Trial(Wide, sys.modules[__name__], []), [])
    attempt = Attempt((), (("x", Tensor((2, 256, 32, 32))),))
    first = next(repairs(attempt, Outcome(Stage.CALL, error="TimeoutError: it ran longer than 4 seconds"), options))
    assert first == Attempt((("dim", "16"), ("hidden", "32")), (("x", Tensor((2, 16, 32, 32))),))


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [({"64": 1.0, "3": 0.1, "2": 0.09}, "3"), ({"64": 1.0, "3": 0.8, "2": 0.1}, "2"), ({"64": 0.1, "3": 0.01, "2": 0.01}, "64")],
)
def test_what_the_repository_constructs_is_taken_where_that_is_faster_by_far(
    seconds: dict[str, float], wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Search.__new__(Search)

    def run(attempt: Attempt) -> Outcome:
        search._seconds = seconds[str(dict(attempt.init)["blocks"])]
        return Outcome(Stage.DONE)

    monkeypatch.setattr(Search, "_run", lambda self, attempt: run(attempt))
    search.options = SimpleNamespace(constructions=[{"blocks": "3"}, {"blocks": "2"}])  # type: ignore[assignment]
    search._time, search._seen = SimpleNamespace(spent=False), set()  # type: ignore[assignment]
    first = Attempt((("blocks", "64"),), ())
    found = search._as_constructed(Found(first, run(first), 1))
    assert dict(found.attempt.init)["blocks"] == wanted


def test_what_is_built_slowly_is_tried_with_smaller_numbers_after_its_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(torch.nn.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(size, size // 32)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.view(2, 16, -1) @ self.fc.weight.view(32, 1)

    trial = Trial(Slow, sys.modules[__name__], [])
    sizes: list[object] = []

    def run(trial: Trial, attempt: Attempt, run: Callable[[Trial, Attempt], Outcome] = Trial.run) -> Outcome:
        sizes.append(dict(attempt.init)["size"])
        return run(trial, attempt)

    monkeypatch.setattr("migrate_agent.tools.record.guessing.search.FEW_TRIALS", -1)
    monkeypatch.setattr(Trial, "run", run)
    best = Search(trial, Options(trial, []), 8.0).run_from(Attempt((("size", "64"),)))
    assert list(dict.fromkeys(sizes))[:3] == ["64", "16", "32"]
    assert best is not None and (best.outcome.stage, best.attempt.init) == (Stage.DONE, (("size", "32"),))
