"""Forecast a multivariate series; an Exp class, early stopping with a best-model file, halved learning rate."""
import argparse
import os

import numpy as np
import torch
import torch.nn as nn
from torch import optim
from torch.utils.data import DataLoader, Dataset


class SeriesDataset(Dataset):
    def __init__(self, flag, seq_len, pred_len):
        t = np.arange(400)
        rng = np.random.RandomState(0)
        data = np.stack([np.sin(t / 8), np.cos(t / 13), np.sin(t / 5) * np.cos(t / 31)], axis=1) + 0.05 * rng.randn(400, 3)
        lo, hi = {'train': (0, 200), 'val': (200, 300), 'test': (300, 400)}[flag]
        mean, std = data[:200].mean(0), data[:200].std(0)
        self.data = ((data - mean) / std)[lo:hi]
        self.seq_len, self.pred_len = seq_len, pred_len

    def __getitem__(self, index):
        s_end = index + self.seq_len
        return self.data[index:s_end], self.data[s_end:s_end + self.pred_len]

    def __len__(self):
        return len(self.data) - self.seq_len - self.pred_len + 1


class Model(nn.Module):
    """Decomposition-free linear forecaster, one linear layer over time."""

    def __init__(self, configs):
        super().__init__()
        self.Linear = nn.Linear(configs.seq_len, configs.pred_len)

    def forward(self, x):
        last = x[:, -1:, :].detach()
        x = x - last
        return self.Linear(x.permute(0, 2, 1)).permute(0, 2, 1) + last


class EarlyStopping:
    def __init__(self, patience=3, delta=0):
        self.patience = patience
        self.counter = 0
        self.best_score = None
        self.early_stop = False
        self.val_loss_min = np.inf
        self.delta = delta

    def __call__(self, val_loss, model, path):
        score = -val_loss
        if self.best_score is None:
            self.best_score = score
            self.save_checkpoint(val_loss, model, path)
        elif score < self.best_score + self.delta:
            self.counter += 1
            print(f'EarlyStopping counter: {self.counter} out of {self.patience}')
            if self.counter >= self.patience:
                self.early_stop = True
        else:
            self.best_score = score
            self.save_checkpoint(val_loss, model, path)
            self.counter = 0

    def save_checkpoint(self, val_loss, model, path):
        print(f'Validation loss decreased ({self.val_loss_min:.6f} --> {val_loss:.6f}).  Saving model ...')
        torch.save(model.state_dict(), path + '/' + 'checkpoint.pth')
        self.val_loss_min = val_loss


def adjust_learning_rate(optimizer, epoch, args):
    lr = args.learning_rate * (0.5 ** ((epoch - 1) // 1))
    for param_group in optimizer.param_groups:
        param_group['lr'] = lr
    print('Updating learning rate to {}'.format(lr))


class Exp:
    def __init__(self, args):
        self.args = args
        self.device = torch.device('cuda:0' if args.use_gpu else 'cpu')
        self.model = Model(args).float().to(self.device)

    def _get_data(self, flag):
        shuffle = flag == 'train'
        return DataLoader(SeriesDataset(flag, self.args.seq_len, self.args.pred_len),
                          batch_size=self.args.batch_size, shuffle=shuffle, drop_last=True)

    def vali(self, loader, criterion):
        total_loss = []
        self.model.eval()
        with torch.no_grad():
            for batch_x, batch_y in loader:
                batch_x, batch_y = batch_x.float().to(self.device), batch_y.float().to(self.device)
                loss = criterion(self.model(batch_x).detach().cpu(), batch_y.detach().cpu())
                total_loss.append(loss.item())
        self.model.train()
        return np.average(total_loss)

    def train(self):
        train_loader, vali_loader = self._get_data('train'), self._get_data('val')
        path = self.args.checkpoints
        if not os.path.exists(path):
            os.makedirs(path)
        early_stopping = EarlyStopping(patience=self.args.patience)
        model_optim = optim.Adam(self.model.parameters(), lr=self.args.learning_rate)
        criterion = nn.MSELoss()
        for epoch in range(self.args.train_epochs):
            train_loss = []
            self.model.train()
            for i, (batch_x, batch_y) in enumerate(train_loader):
                model_optim.zero_grad()
                batch_x = batch_x.float().to(self.device)
                batch_y = batch_y.float().to(self.device)
                outputs = self.model(batch_x)
                loss = criterion(outputs, batch_y)
                train_loss.append(loss.item())
                loss.backward()
                model_optim.step()
            vali_loss = self.vali(vali_loader, criterion)
            print("Epoch: {0}, Steps: {1} | Train Loss: {2:.7f} Vali Loss: {3:.7f}".format(
                epoch + 1, i + 1, np.average(train_loss), vali_loss))
            early_stopping(vali_loss, self.model, path)
            if early_stopping.early_stop:
                print("Early stopping")
                break
            adjust_learning_rate(model_optim, epoch + 1, self.args)
        self.model.load_state_dict(torch.load(path + '/' + 'checkpoint.pth'))
        return self.model


def main():
    parser = argparse.ArgumentParser(description='Forecasting')
    parser.add_argument('--seq_len', type=int, default=24)
    parser.add_argument('--pred_len', type=int, default=6)
    parser.add_argument('--batch_size', type=int, default=32)
    parser.add_argument('--learning_rate', type=float, default=0.01)
    parser.add_argument('--train_epochs', type=int, default=3)
    parser.add_argument('--patience', type=int, default=2)
    parser.add_argument('--checkpoints', type=str, default='./checkpoints')
    parser.add_argument('--use_gpu', action='store_true')
    args = parser.parse_args()
    torch.manual_seed(2021)
    np.random.seed(2021)
    exp = Exp(args)
    exp.train()
    print('test mse {:.6f}'.format(exp.vali(exp._get_data('test'), nn.MSELoss())))


if __name__ == '__main__':
    main()
