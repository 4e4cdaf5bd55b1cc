"""Transforms on arrays, SubsetRandomSampler, a CSV log, SWA at the end."""
import csv
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, Dataset, SubsetRandomSampler


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for t in self.transforms:
            x = t(x)
        return x


class RandomFlip:
    def __call__(self, x):
        return x[:, ::-1].copy() if random.random() < 0.5 else x


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, x):
        return (x - self.mean) / self.std


class ToTensor:
    def __call__(self, x):
        return torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32)).unsqueeze(0)


class Bars(Dataset):
    def __init__(self, n, transform):
        rng = np.random.RandomState(0)
        self.labels = rng.randint(0, 4, n)
        self.images = rng.rand(n, 8, 8) * 0.5
        for image, label in zip(self.images, self.labels):
            image[2 * label : 2 * label + 2] += 0.5
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.transform(self.images[i]), int(self.labels[i])


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.pool = nn.AvgPool2d(2)
        self.fc = nn.Linear(8 * 16, 4)

    def forward(self, x):
        x = self.pool(F.elu(self.conv(x)))
        return self.fc(x.flatten(1))


def main():
    random.seed(0)
    torch.manual_seed(0)
    dataset = Bars(96, Compose([RandomFlip(), Normalize(0.3, 0.3), ToTensor()]))
    indices = list(range(len(dataset)))
    train_loader = DataLoader(dataset, batch_size=16, sampler=SubsetRandomSampler(indices[:80]))
    val_loader = DataLoader(dataset, batch_size=16, sampler=SubsetRandomSampler(indices[80:]))
    log = csv.writer(open('log.csv', 'w', newline=''))
    log.writerow(['step', 'loss'])
    model = ConvNet()
    swa_model = AveragedModel(model)
    optimizer = torch.optim.Adamax(model.parameters(), lr=5e-3)
    step = 0
    for epoch in range(3):
        for images, labels in train_loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            log.writerow([step, '%.6f' % loss.item()])
            step += 1
        if epoch >= 1:
            swa_model.update_parameters(model)
        print('epoch {} loss {:.4f}'.format(epoch, loss.item()))
    swa_model.eval()
    correct = 0
    with torch.no_grad():
        for images, labels in val_loader:
            correct += (swa_model(images).argmax(1) == labels).sum().item()
    print('averaged model: {}/16'.format(correct))


if __name__ == '__main__':
    main()
