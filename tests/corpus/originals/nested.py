"""Takes a dictionary with lists, and gives one back.

call: {"parts": [torch.randn(3, 4), torch.randn(3, 4)], "scale": 2.0}
"""

from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, batch):
        first, second = batch["parts"]
        return {"sum": self.fc(first) + second, "scaled": [first * batch["scale"], second]}
