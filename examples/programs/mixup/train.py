"""Mix-up with label smoothing and accumulated gradients."""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument('--lr', default=0.1, type=float)
parser.add_argument('--seed', default=20, type=int)
parser.add_argument('--epoch', default=2, type=int)
parser.add_argument('--decay', default=1e-4, type=float)
parser.add_argument('--alpha', default=1., type=float)
parser.add_argument('--accumulate', default=2, type=int)
args = parser.parse_args()
torch.manual_seed(args.seed)
np.random.seed(args.seed)


def points(n):
    y = torch.randint(0, 5, (n,))
    return TensorDataset(torch.randn(n, 12) + 1.5 * nn.functional.one_hot(y, 12), y)


trainset = ConcatDataset([points(60), points(44)])
trainloader = DataLoader(trainset, batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(12, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 5))
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=args.decay)


def mixup_data(x, y, alpha=1.0):
    lam = np.random.beta(alpha, alpha) if alpha > 0 else 1
    index = torch.randperm(x.size()[0])
    mixed_x = lam * x + (1 - lam) * x[index, :]
    return mixed_x, y, y[index], lam


def mixup_criterion(criterion, pred, y_a, y_b, lam):
    return lam * criterion(pred, y_a) + (1 - lam) * criterion(pred, y_b)


def adjust_learning_rate(optimizer, epoch):
    lr = args.lr
    if epoch >= 1:
        lr /= 10
    for param_group in optimizer.param_groups:
        param_group['lr'] = lr


for epoch in range(args.epoch):
    adjust_learning_rate(optimizer, epoch)
    net.train()
    train_loss, correct, total = 0.0, 0.0, 0
    optimizer.zero_grad()
    for batch_idx, (inputs, targets) in enumerate(trainloader):
        inputs, targets_a, targets_b, lam = mixup_data(inputs, targets, args.alpha)
        outputs = net(inputs)
        loss = mixup_criterion(criterion, outputs, targets_a, targets_b, lam)
        (loss / args.accumulate).backward()
        if (batch_idx + 1) % args.accumulate == 0 or batch_idx + 1 == len(trainloader):
            optimizer.step()
            optimizer.zero_grad()
        train_loss += loss.item()
        _, predicted = torch.max(outputs.data, 1)
        total += targets.size(0)
        correct += (lam * predicted.eq(targets_a.data).cpu().sum().float()
                    + (1 - lam) * predicted.eq(targets_b.data).cpu().sum().float()).item()
    print('epoch %d loss %.4f acc %.2f' % (epoch, train_loss / (batch_idx + 1), 100. * correct / total))
