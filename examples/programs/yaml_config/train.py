"""Regression on two spirals, everything from a YAML file."""
import argparse

import torch
import torch.nn as nn
import yaml
from torch.utils.data import DataLoader, TensorDataset

ACTIVATIONS = {'tanh': nn.Tanh, 'relu': nn.ReLU}


class Regressor(nn.Module):
    def __init__(self, hidden, activation):
        super().__init__()
        layers, width = [], 1
        for h in hidden:
            layers += [nn.Linear(width, h), ACTIVATIONS[activation]()]
            width = h
        layers.append(nn.Linear(width, 2))
        self.layers = nn.Sequential(*layers)

    def forward(self, t):
        return self.layers(t)


def build_data(cfg):
    t = torch.rand(cfg['n'], 1) * 6
    xy = torch.cat([t * torch.cos(t), t * torch.sin(t)], dim=1) / 6
    return TensorDataset(t, xy + cfg['noise'] * torch.randn_like(xy))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--config', default='config.yaml')
    args = parser.parse_args()
    with open(args.config) as f:
        cfg = yaml.safe_load(f)
    torch.manual_seed(cfg['seed'])

    loader = DataLoader(build_data(cfg['data']), batch_size=cfg['train']['batch_size'], shuffle=True)
    model = Regressor(**cfg['model'])
    optimizer = getattr(torch.optim, cfg['optim'].pop('name'))(model.parameters(), **cfg['optim'])
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, **cfg['scheduler'])
    criterion = nn.SmoothL1Loss()
    for epoch in range(cfg['train']['epochs']):
        epoch_loss = 0.0
        for t, xy in loader:
            optimizer.zero_grad()
            loss = criterion(model(t), xy)
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
            optimizer.step()
            scheduler.step()
            epoch_loss += loss.item() * len(t)
        print(f"epoch {epoch:02d} | loss {epoch_loss / len(loader.dataset):.6f} | lr {optimizer.param_groups[0]['lr']:.2e}")


if __name__ == '__main__':
    main()
