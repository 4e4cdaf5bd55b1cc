"""Node classification on a random graph, full-batch; early stopping on the validation loss."""
from __future__ import division, print_function

import argparse
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

parser = argparse.ArgumentParser()
parser.add_argument('--fastmode', action='store_true', default=False, help='Validate during training pass.')
parser.add_argument('--seed', type=int, default=42)
parser.add_argument('--epochs', type=int, default=8)
parser.add_argument('--lr', type=float, default=0.01)
parser.add_argument('--weight_decay', type=float, default=5e-4)
parser.add_argument('--hidden', type=int, default=16)
parser.add_argument('--dropout', type=float, default=0.5)
args = parser.parse_args()
np.random.seed(args.seed)
torch.manual_seed(args.seed)


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.FloatTensor(in_features, out_features))
        self.bias = nn.Parameter(torch.FloatTensor(out_features))
        stdv = 1. / self.weight.size(1) ** 0.5
        self.weight.data.uniform_(-stdv, stdv)
        self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        return torch.mm(adj, torch.mm(input, self.weight)) + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


def load_data(n=60, classes=3):
    labels = np.random.randint(0, classes, n)
    probability = np.where(labels[:, None] == labels[None, :], 0.2, 0.03)
    upper = np.triu(np.random.rand(n, n) < probability, 1)
    adj = (upper | upper.T).astype(np.float32) + np.eye(n, dtype=np.float32)
    adj = adj / adj.sum(1, keepdims=True)
    features = (np.random.rand(n, 20) < 0.1 + 0.3 * (np.arange(20)[None, :] % classes == labels[:, None])).astype(np.float32)
    idx = torch.randperm(n)
    return torch.FloatTensor(adj), torch.FloatTensor(features), torch.LongTensor(labels), idx[:30], idx[30:45], idx[45:]


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    return preds.eq(labels).double().sum() / len(labels)


adj, features, labels, idx_train, idx_val, idx_test = load_data()
model = GCN(nfeat=features.shape[1], nhid=args.hidden, nclass=labels.max().item() + 1, dropout=args.dropout)
optimizer = optim.Adam(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)


def train(epoch):
    t = time.time()
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    acc_train = accuracy(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()
    if not args.fastmode:
        model.eval()
        output = model(features, adj)
    loss_val = F.nll_loss(output[idx_val], labels[idx_val])
    acc_val = accuracy(output[idx_val], labels[idx_val])
    print('Epoch: {:04d}'.format(epoch + 1), 'loss_train: {:.4f}'.format(loss_train.item()),
          'acc_train: {:.4f}'.format(acc_train.item()), 'loss_val: {:.4f}'.format(loss_val.item()),
          'acc_val: {:.4f}'.format(acc_val.item()), 'time: {:.4f}s'.format(time.time() - t))
    return loss_val.data.item()


def test():
    model.eval()
    output = model(features, adj)
    print("Test set results:", "loss= {:.4f}".format(F.nll_loss(output[idx_test], labels[idx_test]).item()),
          "accuracy= {:.4f}".format(accuracy(output[idx_test], labels[idx_test]).item()))


best, best_epoch, bad_counter = 1e9, 0, 0
for epoch in range(args.epochs):
    loss = train(epoch)
    if loss < best:
        best, best_epoch, bad_counter = loss, epoch, 0
        torch.save(model.state_dict(), '{}.pkl'.format('best'))
    else:
        bad_counter += 1
    if bad_counter == 4:
        break
model.load_state_dict(torch.load('best.pkl'))
test()
