"""Contrastive learning with two noisy views of each point (NT-Xent loss), then a linear probe."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self, dim=16, out=8):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(dim, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))
        self.projector = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, out))

    def forward(self, x):
        h = self.backbone(x)
        return h, F.normalize(self.projector(h), dim=1)


def nt_xent(z1, z2, temperature):
    n = z1.shape[0]
    z = torch.cat([z1, z2], dim=0)
    sim = z @ z.t() / temperature
    mask = torch.eye(2 * n, dtype=torch.bool, device=z.device)
    sim = sim.masked_fill(mask, float('-inf'))
    targets = torch.cat([torch.arange(n, 2 * n), torch.arange(0, n)]).to(z.device)
    return F.cross_entropy(sim, targets)


class AverageMeter(object):
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / self.count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--epochs', default=2, type=int)
    parser.add_argument('--batch-size', default=32, type=int)
    parser.add_argument('--lr', default=0.05, type=float)
    parser.add_argument('--temp', default=0.5, type=float)
    args = parser.parse_args()
    torch.manual_seed(11)

    centres = torch.randn(4, 16)
    labels = torch.arange(160) % 4
    points = centres[labels] + 0.3 * torch.randn(160, 16)
    loader = DataLoader(TensorDataset(points, labels), batch_size=args.batch_size, shuffle=True, drop_last=True)

    model = Encoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr, epochs=args.epochs, steps_per_epoch=len(loader))
    for epoch in range(args.epochs):
        model.train()
        losses = AverageMeter()
        for x, _ in loader:
            x1 = x + 0.1 * torch.randn_like(x)
            x2 = x + 0.1 * torch.randn_like(x)
            _, z1 = model(x1)
            _, z2 = model(x2)
            loss = nt_xent(z1, z2, args.temp)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.update(loss.item(), x.size(0))
        print('epoch {} loss {:.4f} lr {:.5f}'.format(epoch, losses.avg, scheduler.get_last_lr()[0]))

    model.eval()
    with torch.no_grad():
        h, _ = model(points)
    means = torch.stack([h[labels == k].mean(0) for k in range(4)])
    predicted = torch.cdist(h, means).argmin(1)
    print('nearest-mean accuracy %.3f' % (predicted == labels).float().mean().item())


if __name__ == '__main__':
    main()
