"""A policy that gives distributions: of actions one by one, and of all of them together.

init: 5, 3
call: torch.randn(4, 5)
"""

import torch
from torch import nn
from torch.distributions import Categorical, Independent, Normal


class M(nn.Module):
    def __init__(self, observations=5, actions=3):
        super().__init__()
        self.mean = nn.Linear(observations, actions)
        self.choice = nn.Linear(observations, actions)
        self.log_std = nn.Parameter(torch.zeros(actions))

    def forward(self, x):
        steps = Independent(Normal(torch.tanh(self.mean(x)), self.log_std.exp()), 1)
        return steps, Categorical(logits=self.choice(x))
