"""The models, written in PyTorch after the papers and MXNet's scripts.

Each function takes its blocks from p in the order in which the published lists have
them, and returns scores. p says what dropout does, whether gradients of tables are
sparse, and whether the gates of a GRU are split into two sets of blocks. Nothing here
knows of the Go code.

Sequences of a batch are padded to one length; where lengths are None, none is.
"""

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence


def norm(p, x, eps, fixed=False):
    gamma, beta = p.gamma(x.shape[1]), p.beta(x.shape[1])
    if fixed:  # stays one, and has no gradient
        gamma = torch.ones_like(gamma)
    return F.batch_norm(x, None, None, gamma, beta, training=True, eps=eps)


def conv(p, x, filters, kernel, stride=1):
    return F.conv2d(x, p.weights(filters, x.shape[1], kernel, kernel), stride=stride, padding=kernel // 2)


def conv_bias(p, x, filters, kernel, stride=1):
    w, b = p.weights(filters, x.shape[1], kernel, kernel), p.bias(filters)
    return F.conv2d(x, w, b, stride=stride, padding=kernel // 2)


def dense(p, x, out):
    w, b = p.weights(out, x.shape[1]), p.bias(out)
    return F.linear(x, w, b)


def head(p, x, classes):
    return dense(p, x.mean(dim=(2, 3)), classes)


def resnext_110(p, x, classes):
    eps = 2e-5
    x = conv(p, norm(p, x, eps, fixed=True), 16, 3)
    for stage, filters in enumerate([16, 32, 64]):
        for unit in range(18):
            stride = 2 if stage > 0 and unit == 0 else 1
            y = F.relu(norm(p, conv(p, x, filters, 3, stride), eps))
            y = norm(p, conv(p, y, filters, 3), eps)
            if unit == 0:
                x = norm(p, conv(p, x, filters, 1, stride), eps)
            x = F.relu(x + y)
    return head(p, x, classes)


def resnet_50(p, x, classes):
    eps = 2e-5
    x = conv(p, norm(p, x, eps, fixed=True), 64, 7, 2)
    x = F.max_pool2d(F.relu(norm(p, x, eps)), 3, 2, padding=1)
    for stage, (units, out) in enumerate(zip([3, 4, 6, 3], [256, 512, 1024, 2048])):
        for unit in range(units):
            stride = 2 if stage > 0 and unit == 0 else 1
            h = F.relu(norm(p, x, eps))
            y = F.relu(norm(p, conv(p, h, out // 4, 1), eps))
            y = F.relu(norm(p, conv(p, y, out // 4, 3, stride), eps))
            y = conv(p, y, out, 1)
            x = y + (conv(p, h, out, 1, stride) if unit == 0 else x)
    return head(p, F.relu(norm(p, x, eps)), classes)


def inception_bn(p, x, classes):
    def unit(x, filters, kernel, stride=1):
        return F.relu(norm(p, conv_bias(p, x, filters, kernel, stride), 1e-5 + 1e-10))

    def keep(x, c1, r3, c3, rd, cd, pool, proj):
        a = unit(x, c1, 1)
        b = unit(unit(x, r3, 1), c3, 3)
        c = unit(unit(unit(x, rd, 1), cd, 3), cd, 3)
        q = F.max_pool2d(x, 3, 1, padding=1) if pool == "max" else F.avg_pool2d(x, 3, 1, padding=1)
        return torch.cat([a, b, c, unit(q, proj, 1)], dim=1)

    def halve(x, r3, c3, rd, cd):
        b = unit(unit(x, r3, 1), c3, 3, 2)
        c = unit(unit(unit(x, rd, 1), cd, 3), cd, 3, 2)
        return torch.cat([b, c, F.max_pool2d(x, 3, 2, padding=1)], dim=1)

    x = F.max_pool2d(unit(x, 64, 7, 2), 3, 2)
    x = F.max_pool2d(unit(unit(x, 64, 1), 192, 3), 3, 2)
    x = keep(x, 64, 64, 64, 64, 96, "avg", 32)
    x = keep(x, 64, 64, 96, 64, 96, "avg", 64)
    x = halve(x, 128, 160, 64, 96)
    x = keep(x, 224, 64, 96, 96, 128, "avg", 128)
    x = keep(x, 192, 96, 128, 96, 128, "avg", 128)
    x = keep(x, 160, 128, 160, 128, 160, "avg", 128)
    x = keep(x, 96, 128, 192, 160, 192, "avg", 128)
    x = halve(x, 128, 192, 192, 256)
    x = keep(x, 352, 192, 320, 160, 224, "avg", 128)
    x = keep(x, 352, 192, 320, 192, 224, "max", 128)
    return head(p, x, classes)


def kaggle(p, x, classes):
    x = F.relu(conv_bias(p, x, 32, 5))
    x = F.relu(conv_bias(p, x, 64, 5))
    x = F.max_pool2d(x, 3, 2)
    for filters in [64, 64, 128]:
        x = F.relu(conv_bias(p, x, filters, 3))
    x = F.max_pool2d(x, 3, 2)
    for filters in [256, 256]:
        x = F.relu(conv_bias(p, x, filters, 3))
    return dense(p, p.dropout(torch.flatten(F.avg_pool2d(x, 9, 1), 1), 0.25), classes)


def cnn_rand(p, tokens, classes, vocabulary=500):
    """tokens [N, T]"""
    x = F.embedding(tokens, p.table(vocabulary, 300)).transpose(1, 2)
    towers = []
    for width in [3, 4, 5]:
        w, b = p.weights(100, width, 300).transpose(1, 2), p.bias(100)
        towers.append(F.relu(F.conv1d(x, w, b)).amax(dim=2))
    return dense(p, torch.cat(towers, dim=1), classes)


def cifar_small(p, x, classes):
    for filters in [16, 32, 64]:
        x = F.relu(F.max_pool2d(norm(p, conv(p, x, filters, 3), 1e-5), 2, 2))
    return dense(p, torch.flatten(x, 1), classes)


def cells(p, gates, units, width):
    """The blocks of a layer in one direction, in the order of torch.lstm and torch.gru."""
    if gates == 3 and p.split:  # reset and update gate, then the candidate
        parts = [(p.weights(g * units, width), p.bias(g * units), p.weights(g * units, units), p.bias(g * units)) for g in (2, 1)]
        w, b, r, c = (torch.cat(both) for both in zip(*parts))
        return [w, r, b, c]
    return [p.weights(gates * units, width), p.weights(gates * units, units), p.bias(gates * units), p.bias(gates * units)]


def recurrent(p, layer, gates, x, units, directions=1, lengths=None):
    """x [T, N, E] to [T, N, directions*units], which is zero behind lengths"""
    blocks = [b for _ in range(directions) for b in cells(p, gates, units, x.shape[2])]
    zero = x.new_zeros(directions, x.shape[1], units)
    start = (zero, zero) if layer is torch.lstm else zero
    if lengths is None:
        return layer(x, start, blocks, True, 1, 0.0, True, directions == 2, False)[0]
    packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
    y = layer(packed.data, packed.batch_sizes, start, blocks, True, 1, 0.0, True, directions == 2)[0]
    return pad_packed_sequence(PackedSequence(y, *packed[1:]), total_length=len(x))[0]


def rnn_lstm(p, tokens, vocabulary):
    """tokens [N, T]; scores [N*T, vocabulary]"""
    x = p.dropout(F.embedding(tokens.t(), p.table(vocabulary, 200), sparse=p.sparse), 0.2)
    for _ in range(2):
        x = p.dropout(recurrent(p, torch.lstm, 4, x, 200), 0.2)
    return dense(p, x.transpose(0, 1).flatten(0, 1), vocabulary)


def bags(p, ids, table):
    """ids [bags, most] to the sums of their rows"""
    return F.embedding_bag(ids, table, mode="sum", sparse=p.sparse)


def padded_bags(p, ids, table):
    """The same where ids that equal the number of rows are padding."""
    own = ids < len(table)
    ends = own.sum(dim=1).cumsum(dim=0)
    return F.embedding_bag(ids[own], table, ends - own.sum(dim=1), mode="sum", sparse=p.sparse)


def dssm(p, around, candidates, trigrams, bags=bags):
    """around [N, 4*most], candidates [N, 5*most]; scores [N, 5]"""
    n, most = around.shape[0], around.shape[1] // 4
    table = p.table(trigrams, 100)
    x = bags(p, around, table)
    c = bags(p, candidates.reshape(n * 5, most), table)
    return torch.bmm(c.view(n, 5, 100), x.unsqueeze(2)).squeeze(2)


def seq2seq(p, words, before, sources, targets, lengths=None):
    """words [N, S] of lengths and before [N, T]; scores [N*T, targets]"""
    source = F.embedding(words.t(), p.table(sources, 256), sparse=p.sparse)
    target = F.embedding(before.t(), p.table(targets, 256), sparse=p.sparse)
    memory = recurrent(p, torch.lstm, 4, source, 256, 2, lengths)
    last = memory[-1] if lengths is None else memory[lengths - 1, torch.arange(len(lengths))]
    h, c = torch.tanh(dense(p, last, 512)), torch.tanh(dense(p, last, 512))
    cell = [p.weights(2048, 768), p.weights(2048, 512), p.bias(2048), p.bias(2048)]
    query, combine, bias = p.weights(512, 512), p.weights(512, 1024), p.bias(512)
    memory = memory.transpose(0, 1)
    if lengths is not None:
        padding = torch.arange(memory.shape[1]) >= lengths.unsqueeze(1)
    y, ys = torch.zeros_like(h), []
    for x in target:
        h, c = torch.lstm_cell(torch.cat([x, y], dim=1), (h, c), *cell)
        q = F.linear(h, query)
        scores = torch.bmm(memory, q.unsqueeze(2))
        if lengths is not None:
            scores = scores.masked_fill(padding.unsqueeze(2), -torch.inf)
        shares = torch.softmax(scores, dim=1)
        context = torch.bmm(shares.transpose(1, 2), memory).squeeze(1)
        y = torch.tanh(F.linear(torch.cat([context, h], dim=1), combine, bias))
        ys.append(y)
    return dense(p, torch.stack(ys, dim=1).flatten(0, 1), targets)


def deepspeech2(p, spectrogram, letters, lengths=None):
    """spectrogram [N, T, 1, 1, W] of lengths; scores [steps, N, letters] and lengths"""
    x = spectrogram.reshape(spectrogram.shape[0], 1, spectrogram.shape[1], -1)
    for kernel, stride in [((11, 41), (2, 2)), ((11, 21), (1, 2))]:
        x = F.relu(norm(p, F.conv2d(x, p.weights(32, x.shape[1], *kernel), stride=stride), 1e-5))
        if lengths is not None:
            lengths = (lengths - kernel[0]) // stride[0] + 1
    x = x.permute(2, 0, 1, 3).flatten(2)
    for _ in range(3):
        x = recurrent(p, torch.gru, 3, x, 900, 2, lengths)
    scores = dense(p, x.flatten(0, 1), letters).view(x.shape[0], -1, letters)
    return scores, torch.full((x.shape[1],), len(x)) if lengths is None else lengths


def sampled_logistic(scores):
    """The loss of scores [N, K] of which the first is that of the true candidate, summed over N."""
    return -(F.logsigmoid(scores[:, 0]).sum() + F.logsigmoid(-scores[:, 1:]).sum())


def ctc(scores, lengths, labels, label_lengths):
    """The loss, summed over the batch; class 0 is the blank."""
    return F.ctc_loss(F.log_softmax(scores, dim=2), labels, lengths, label_lengths, blank=0, reduction="sum")
