"""Knowledge distillation: train a teacher, then a student on its soft targets."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import Adam


def make_net(hidden):
    return nn.Sequential(nn.Linear(10, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 4))


def loss_fn_kd(outputs, labels, teacher_outputs, alpha, T):
    kd = nn.KLDivLoss(reduction='batchmean')(F.log_softmax(outputs / T, dim=1), F.softmax(teacher_outputs / T, dim=1))
    return kd * (alpha * T * T) + F.cross_entropy(outputs, labels) * (1. - alpha)


def batches(x, y, batch_size):
    perm = torch.randperm(len(x))
    for i in range(0, len(x), batch_size):
        idx = perm[i:i + batch_size]
        yield x[idx], y[idx]


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        result = (net(x).argmax(dim=1) == y).float().mean().item()
    net.train()
    return result


def train_teacher(teacher, x, y, epochs=2):
    optimizer = Adam(teacher.parameters(), lr=1e-2)
    for epoch in range(epochs):
        for xb, yb in batches(x, y, 32):
            optimizer.zero_grad()
            loss = F.cross_entropy(teacher(xb), yb)
            loss.backward()
            optimizer.step()
        print(f'teacher epoch {epoch}: loss {loss.item():.4f}')


def train_student(student, teacher, x, y, epochs=2, alpha=0.9, T=4.0):
    optimizer = Adam(student.parameters(), lr=1e-2)
    teacher.eval()
    for epoch in range(epochs):
        for xb, yb in batches(x, y, 32):
            with torch.no_grad():
                teacher_outputs = teacher(xb)
            outputs = student(xb)
            loss = loss_fn_kd(outputs, yb, teacher_outputs, alpha, T)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f'student epoch {epoch}: loss {loss.item():.4f}')


if __name__ == '__main__':
    torch.manual_seed(5)
    x = torch.randn(200, 10)
    y = (x @ torch.randn(10, 4)).argmax(dim=1)
    teacher, student = make_net(48), make_net(8)
    train_teacher(teacher, x[:150], y[:150])
    print('teacher accuracy %.3f' % accuracy(teacher, x[150:], y[150:]))
    train_student(student, teacher, x[:150], y[:150])
    print('student accuracy %.3f' % accuracy(student, x[150:], y[150:]))
