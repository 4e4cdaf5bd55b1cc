"""Recurrent layers (https://docs.pytorch.org/docs/stable/nn.html#recurrent-layers).

Parameters keep torch's names, layout and gate order.
"""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Layer

CELL = {name: "{self}." + name for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}

ROWS = (
    Layer(
        "torch.nn.RNN",
        "input_size, hidden_size, num_layers=1, nonlinearity='tanh', bias=True, batch_first=False, dropout=0.0, "
        "bidirectional=False, device=None, dtype=None",
        "RNN",
        samples=("3, 4",),
    ),
    Layer(
        "torch.nn.LSTM",
        "input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, "
        "proj_size=0, device=None, dtype=None",
        "LSTM",
        samples=("3, 4",),
    ),
    Layer(
        "torch.nn.GRU",
        "input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, device=None, dtype=None",
        "GRU",
        samples=("3, 4",),
    ),
    Layer(
        "torch.nn.RNNCell",
        "input_size, hidden_size, bias=True, nonlinearity='tanh', device=None, dtype=None",
        "RNNCell",
        params=CELL,
        samples=("3, 4",),
    ),
    Layer("torch.nn.LSTMCell", "input_size, hidden_size, bias=True, device=None, dtype=None", "LSTMCell", params=CELL, samples=("3, 4",)),
    Layer("torch.nn.GRUCell", "input_size, hidden_size, bias=True, device=None, dtype=None", "GRUCell", params=CELL, samples=("3, 4",)),
)
