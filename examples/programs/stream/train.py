"""Predict the next bit of a stream: IterableDataset, gradient checkpointing, resume."""
import argparse
import os

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, IterableDataset


class Automaton(IterableDataset):
    """Windows of the orbit of rule 30."""

    def __init__(self, steps, width=24):
        self.steps, self.width = steps, width

    def __iter__(self):
        row = torch.zeros(self.width, dtype=torch.long)
        row[self.width // 2] = 1
        for _ in range(self.steps):
            left, right = torch.roll(row, 1), torch.roll(row, -1)
            after = left ^ (row | right)
            yield row.float(), after.float()
            row = after


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.ff = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, x):
        return x + self.ff(self.norm(x))


class Net(nn.Module):
    def __init__(self, width=24, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.out = nn.Linear(width, width)

    def forward(self, x):
        for block in self.blocks:
            if self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.out(x)


def main(args):
    torch.manual_seed(0)
    loader = DataLoader(Automaton(64), batch_size=16)
    model = Net()
    optimizer = torch.optim.RAdam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
    start_epoch = 0
    if args.resume and os.path.isfile(args.checkpoint):
        state = torch.load(args.checkpoint)
        model.load_state_dict(state['model'])
        optimizer.load_state_dict(state['optimizer'])
        scheduler.load_state_dict(state['scheduler'])
        start_epoch = state['epoch']
        print(f"resumed at epoch {start_epoch}")
    for epoch in range(start_epoch, args.epochs):
        model.train()
        for x, y in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        model.eval()
        with torch.no_grad():
            x, y = next(iter(loader))
            accuracy = ((model(x) > 0) == (y > 0.5)).float().mean()
        print(f"epoch {epoch} loss {loss.item():.5f} accuracy {accuracy.item():.3f}")
        torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict(),
                    'scheduler': scheduler.state_dict(), 'epoch': epoch + 1}, args.checkpoint)


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--epochs', type=int, default=2)
    parser.add_argument('--checkpoint', default='last.pt')
    parser.add_argument('--resume', action='store_true')
    main(parser.parse_args())
