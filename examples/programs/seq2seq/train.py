"""Reverse a sequence: encoder and decoder with an optimizer each, teacher forcing, a loop over time in the script."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

SOS_token, EOS_token, N_TOKENS, MAX_LENGTH = 0, 1, 8, 6
teacher_forcing_ratio = 0.5


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size):
        super(EncoderRNN, self).__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)

    def forward(self, input):
        return self.gru(self.embedding(input))


class DecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super(DecoderRNN, self).__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, input, hidden):
        output, hidden = self.gru(F.relu(self.embedding(input)), hidden)
        return self.out(output[:, 0]), hidden


def make_batch(batch_size):
    source = torch.randint(2, N_TOKENS, (batch_size, MAX_LENGTH))
    return source, torch.flip(source, dims=[1])


def train_step(source, target, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion):
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    loss = 0
    _, decoder_hidden = encoder(source)
    decoder_input = torch.full((source.size(0), 1), SOS_token, dtype=torch.long)
    use_teacher_forcing = random.random() < teacher_forcing_ratio
    for di in range(MAX_LENGTH):
        decoder_output, decoder_hidden = decoder(decoder_input, decoder_hidden)
        loss += criterion(decoder_output, target[:, di])
        if use_teacher_forcing:
            decoder_input = target[:, di:di + 1]
        else:
            topv, topi = decoder_output.topk(1)
            decoder_input = topi.detach()
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
    return loss.item() / MAX_LENGTH


def evaluate(encoder, decoder, source):
    with torch.no_grad():
        _, hidden = encoder(source)
        decoder_input = torch.full((source.size(0), 1), SOS_token, dtype=torch.long)
        decoded = []
        for di in range(MAX_LENGTH):
            output, hidden = decoder(decoder_input, hidden)
            decoder_input = output.argmax(dim=1, keepdim=True)
            decoded.append(decoder_input)
    return torch.cat(decoded, dim=1)


def main(n_iters=6, hidden_size=16):
    torch.manual_seed(0)
    random.seed(0)
    encoder = EncoderRNN(N_TOKENS, hidden_size)
    decoder = DecoderRNN(hidden_size, N_TOKENS)
    encoder_optimizer = optim.SGD(encoder.parameters(), lr=0.05)
    decoder_optimizer = optim.SGD(decoder.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()
    for it in range(1, n_iters + 1):
        source, target = make_batch(16)
        loss = train_step(source, target, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion)
        print('%d (%d%%) %.4f' % (it, it / n_iters * 100, loss))
    source, target = make_batch(4)
    print('exact match %.2f' % (evaluate(encoder, decoder, source) == target).float().mean().item())


if __name__ == '__main__':
    main()
