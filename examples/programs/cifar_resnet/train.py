'''Train a ResNet on CIFAR-like images: SGD, warm-up, cosine, best checkpoint.'''
import argparse
import os

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

from resnet import resnet8

parser = argparse.ArgumentParser(description='ResNet training')
parser.add_argument('--lr', default=0.1, type=float, help='learning rate')
parser.add_argument('--epochs', default=3, type=int)
parser.add_argument('--warmup', default=1, type=int, help='epochs of linear warm-up')
parser.add_argument('--batch-size', default=32, type=int)
parser.add_argument('--resume', '-r', action='store_true', help='resume from checkpoint')
args = parser.parse_args()

device = 'cuda' if torch.cuda.is_available() else 'cpu'
torch.manual_seed(0)
best_acc = 0
start_epoch = 0


def fake_cifar(n):
    targets = torch.randint(0, 10, (n,))
    images = 0.5 * torch.randn(n, 3, 16, 16)
    images[torch.arange(n), targets % 3, targets, :] += 1.0
    return TensorDataset(images, targets)


print('==> Preparing data..')
trainloader = DataLoader(fake_cifar(96), batch_size=args.batch_size, shuffle=True)
testloader = DataLoader(fake_cifar(64), batch_size=50, shuffle=False)

print('==> Building model..')
net = resnet8().to(device)

if args.resume:
    print('==> Resuming from checkpoint..')
    checkpoint = torch.load('./checkpoint/ckpt.pth')
    net.load_state_dict(checkpoint['net'])
    best_acc = checkpoint['acc']
    start_epoch = checkpoint['epoch']

criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
steps_per_epoch = len(trainloader)
warmup = optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=args.warmup * steps_per_epoch)
cosine = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=(args.epochs - args.warmup) * steps_per_epoch)
scheduler = optim.lr_scheduler.SequentialLR(optimizer, [warmup, cosine], milestones=[args.warmup * steps_per_epoch])


def train(epoch):
    print('\nEpoch: %d' % epoch)
    net.train()
    train_loss = 0
    correct = 0
    total = 0
    for batch_idx, (inputs, targets) in enumerate(trainloader):
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        scheduler.step()

        train_loss += loss.item()
        _, predicted = outputs.max(1)
        total += targets.size(0)
        correct += predicted.eq(targets).sum().item()
        print(batch_idx, len(trainloader), 'Loss: %.3f | Acc: %.3f%% (%d/%d)'
              % (train_loss / (batch_idx + 1), 100. * correct / total, correct, total))


def test(epoch):
    global best_acc
    net.eval()
    test_loss = 0
    correct = 0
    total = 0
    with torch.no_grad():
        for batch_idx, (inputs, targets) in enumerate(testloader):
            inputs, targets = inputs.to(device), targets.to(device)
            outputs = net(inputs)
            loss = criterion(outputs, targets)
            test_loss += loss.item()
            _, predicted = outputs.max(1)
            total += targets.size(0)
            correct += predicted.eq(targets).sum().item()
    acc = 100. * correct / total
    print('Test loss: %.3f | Acc: %.3f%%' % (test_loss / (batch_idx + 1), acc))
    if acc > best_acc:
        print('Saving..')
        state = {'net': net.state_dict(), 'acc': acc, 'epoch': epoch}
        if not os.path.isdir('checkpoint'):
            os.mkdir('checkpoint')
        torch.save(state, './checkpoint/ckpt.pth')
        best_acc = acc


for epoch in range(start_epoch, start_epoch + args.epochs):
    train(epoch)
    test(epoch)
