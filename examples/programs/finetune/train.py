"""Fine-tune the head of a frozen backbone, then the last block too with a lower rate."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.block = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.fc = nn.Linear(8, 100)

    def forward(self, x):
        x = self.block(self.stem(x))
        return self.fc(x.mean(dim=(2, 3)))


torch.manual_seed(42)
labels = torch.randint(0, 2, (96,))
images = torch.randn(96, 1, 8, 8) + labels.view(-1, 1, 1, 1) * torch.linspace(-1, 1, 8)
train_set, val_set = random_split(TensorDataset(images, labels), [64, 32])
dataloaders = {
    'train': DataLoader(train_set, batch_size=16, shuffle=True),
    'val': DataLoader(val_set, batch_size=16),
}

model = Backbone()
# stands in for downloaded weights
torch.save(model.state_dict(), 'pretrained.pth')
model.load_state_dict(torch.load('pretrained.pth'))
for param in model.parameters():
    param.requires_grad = False
model.fc = nn.Linear(8, 2)
for param in model.block.parameters():
    param.requires_grad = True

criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam([
    {'params': model.fc.parameters()},
    {'params': model.block.parameters(), 'lr': 1e-4},
], lr=1e-2, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)

best_acc = 0.0
for epoch in range(3):
    print('Epoch {}/{}'.format(epoch, 2))
    for phase in ['train', 'val']:
        if phase == 'train':
            model.train()
        else:
            model.eval()
        running_loss = 0.0
        running_corrects = 0
        for inputs, targets in dataloaders[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == 'train'):
                outputs = model(inputs)
                _, preds = torch.max(outputs, 1)
                loss = criterion(outputs, targets)
                if phase == 'train':
                    loss.backward()
                    optimizer.step()
            running_loss += loss.item() * inputs.size(0)
            running_corrects += torch.sum(preds == targets.data)
        if phase == 'train':
            scheduler.step()
        epoch_loss = running_loss / len(dataloaders[phase].dataset)
        epoch_acc = running_corrects.double() / len(dataloaders[phase].dataset)
        print('{} Loss: {:.4f} Acc: {:.4f}'.format(phase, epoch_loss, epoch_acc))
        if phase == 'val' and epoch_acc > best_acc:
            best_acc = epoch_acc
            torch.save(model.state_dict(), 'best_model_params.pt')
print('Best val Acc: {:4f}'.format(best_acc))
