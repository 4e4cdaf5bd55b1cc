"""Segment bright discs with a small U-Net; random_split, collate_fn, validation Dice, RMSprop and plateau."""
import argparse
import logging
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, Dataset, Subset, random_split

dir_checkpoint = Path('checkpoints')


class Discs(Dataset):
    def __init__(self, n, size=16):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        cx, cy, r = rng.uniform(4, 12), rng.uniform(4, 12), rng.uniform(2, 4)
        yy, xx = np.mgrid[: self.size, : self.size]
        mask = ((xx - cx) ** 2 + (yy - cy) ** 2 < r * r).astype(np.float32)
        image = (mask + 0.3 * rng.standard_normal(mask.shape)).astype(np.float32)
        return {'image': image[None], 'mask': mask}


def collate(samples):
    images = torch.from_numpy(np.stack([s['image'] for s in samples]))
    masks = torch.from_numpy(np.stack([s['mask'] for s in samples]))
    return {'image': images, 'mask': masks}


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.inc = DoubleConv(1, width)
        self.down = DoubleConv(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, kernel_size=2, stride=2)
        self.conv = DoubleConv(2 * width, width)
        self.outc = nn.Conv2d(width, 1, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.up(self.down(F.max_pool2d(x1, 2)))
        return self.outc(self.conv(torch.cat([x1, x2], dim=1)))


def dice_loss(probs, target, epsilon=1e-6):
    inter = 2 * (probs * target).sum(dim=(-1, -2))
    sets_sum = probs.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2))
    return 1 - ((inter + epsilon) / (sets_sum + epsilon)).mean()


@torch.inference_mode()
def evaluate(net, dataloader, device):
    net.eval()
    dice_score = 0
    for batch in dataloader:
        image, mask_true = batch['image'].to(device), batch['mask'].to(device)
        mask_pred = (torch.sigmoid(net(image).squeeze(1)) > 0.5).float()
        dice_score += 1 - dice_loss(mask_pred, mask_true)
    net.train()
    return dice_score / max(len(dataloader), 1)


def train_model(model, device, epochs, batch_size, learning_rate, val_percent, save_checkpoint):
    dataset = Subset(Discs(80), range(0, 60))
    n_val = int(len(dataset) * val_percent)
    n_train = len(dataset) - n_val
    train_set, val_set = random_split(dataset, [n_train, n_val], generator=torch.Generator().manual_seed(0))
    train_loader = DataLoader(train_set, shuffle=True, batch_size=batch_size, num_workers=0, collate_fn=collate)
    val_loader = DataLoader(val_set, shuffle=False, drop_last=True, batch_size=batch_size, collate_fn=collate)
    logging.info(f'Training size: {n_train}, validation size: {n_val}')

    optimizer = optim.RMSprop(model.parameters(), lr=learning_rate, weight_decay=1e-8, momentum=0.9)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, 'max', patience=1)
    criterion = nn.BCEWithLogitsLoss()
    global_step = 0
    for epoch in range(1, epochs + 1):
        model.train()
        epoch_loss = 0
        for batch in train_loader:
            images, true_masks = batch['image'].to(device), batch['mask'].to(device)
            masks_pred = model(images)
            loss = criterion(masks_pred.squeeze(1), true_masks)
            loss += dice_loss(torch.sigmoid(masks_pred.squeeze(1)), true_masks)

            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            global_step += 1
            epoch_loss += loss.item()
            print(f'epoch {epoch} step {global_step} loss (batch) {loss.item():.4f}')

        val_score = evaluate(model, val_loader, device)
        scheduler.step(val_score)
        print('Validation Dice score: {:.4f}, epoch loss {:.4f}'.format(val_score.item(), epoch_loss / len(train_loader)))
        if save_checkpoint:
            dir_checkpoint.mkdir(parents=True, exist_ok=True)
            torch.save(model.state_dict(), str(dir_checkpoint / 'checkpoint_epoch{}.pth'.format(epoch)))


def get_args():
    parser = argparse.ArgumentParser(description='Train the UNet on images and target masks')
    parser.add_argument('--epochs', '-e', metavar='E', type=int, default=2)
    parser.add_argument('--batch-size', '-b', dest='batch_size', type=int, default=8)
    parser.add_argument('--learning-rate', '-l', type=float, default=1e-4, dest='lr')
    parser.add_argument('--validation', '-v', dest='val', type=float, default=20.0)
    return parser.parse_args()


if __name__ == '__main__':
    args = get_args()
    logging.basicConfig(level=logging.INFO, format='%(levelname)s: %(message)s', stream=sys.stderr)
    torch.manual_seed(0)
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    model = UNet().to(device)
    train_model(model, device, args.epochs, args.batch_size, args.lr, args.val / 100, save_checkpoint=True)
