"""The models, written in PyTorch after the papers and MXNet's scripts.

Each function takes its blocks from p in the order in which the published lists have
them, and returns scores. p.dropout says what dropout does. Nothing here knows of the
Go code.
"""

import torch
import torch.nn.functional as F


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
    x = F.embedding(tokens, p.weights(vocabulary, 300)).transpose(1, 2)
    towers = []
    for width in [3, 4, 5]:
        w, b = p.weights(100, width, 300).transpose(1, 2), p.bias(100)
        towers.append(F.relu(F.conv1d(x, w, b)).amax(dim=2))
    return dense(p, torch.cat(towers, dim=1), classes)


def cifar_small(p, x, classes):
    for filters in [16, 32, 64]:
        x = F.relu(F.max_pool2d(norm(p, conv(p, x, filters, 3), 1e-5), 2, 2))
    return dense(p, torch.flatten(x, 1), classes)


def recurrent(p, layer, gates, x, units, directions=1):
    """x [T, N, E] to [T, N, directions*units]"""
    blocks = []
    for _ in range(directions):
        blocks += [p.weights(gates * units, x.shape[2]), p.weights(gates * units, units), p.bias(gates * units), p.bias(gates * units)]
    zero = x.new_zeros(directions, x.shape[1], units)
    start = (zero, zero) if layer is torch.lstm else zero
    return layer(x, start, blocks, True, 1, 0.0, True, directions == 2, False)[0]


def rnn_lstm(p, tokens, vocabulary):
    """tokens [N, T]; scores [N*T, vocabulary]"""
    x = p.dropout(F.embedding(tokens.t(), p.weights(vocabulary, 200), sparse=p.sparse), 0.2)
    for _ in range(2):
        x = p.dropout(recurrent(p, torch.lstm, 4, x, 200), 0.2)
    return dense(p, x.transpose(0, 1).flatten(0, 1), vocabulary)


def dssm(p, around, candidates, trigrams):
    """around [N, 4*most], candidates [N, 5*most]; scores [N, 5]"""
    n, most = around.shape[0], around.shape[1] // 4
    table = p.weights(trigrams, 100)
    x = F.embedding_bag(around, table, mode="sum", sparse=p.sparse)
    c = F.embedding_bag(candidates.reshape(n * 5, most), table, mode="sum", sparse=p.sparse)
    return torch.bmm(c.view(n, 5, 100), x.unsqueeze(2)).squeeze(2)


def seq2seq(p, words, before, sources, targets):
    """words [N, S] and before [N, T], all of the full length; scores [N*T, targets]"""
    source = F.embedding(words.t(), p.weights(sources, 256), sparse=p.sparse)
    target = F.embedding(before.t(), p.weights(targets, 256), sparse=p.sparse)
    memory = recurrent(p, torch.lstm, 4, source, 256, directions=2)
    h, c = torch.tanh(dense(p, memory[-1], 512)), torch.tanh(dense(p, memory[-1], 512))
    cell = [p.weights(2048, 768), p.weights(2048, 512), p.bias(2048), p.bias(2048)]
    query, combine, bias = p.weights(512, 512), p.weights(512, 1024), p.bias(512)
    memory = memory.transpose(0, 1)
    y, ys = torch.zeros_like(h), []
    for x in target:
        h, c = torch.lstm_cell(torch.cat([x, y], dim=1), (h, c), *cell)
        q = F.linear(h, query)
        shares = torch.softmax(torch.bmm(memory, q.unsqueeze(2)), dim=1)
        context = torch.bmm(shares.transpose(1, 2), memory).squeeze(1)
        y = torch.tanh(F.linear(torch.cat([context, h], dim=1), combine, bias))
        ys.append(y)
    return dense(p, torch.stack(ys, dim=1).flatten(0, 1), targets)


def deepspeech2(p, spectrogram, letters):
    """spectrogram [N, T, 1, 1, W], all of the full length; scores [steps, N, letters]"""
    x = spectrogram.reshape(spectrogram.shape[0], 1, spectrogram.shape[1], -1)
    for kernel, stride in [((11, 41), (2, 2)), ((11, 21), (1, 2))]:
        x = F.relu(norm(p, F.conv2d(x, p.weights(32, x.shape[1], *kernel), stride=stride), 1e-5))
    x = x.permute(2, 0, 1, 3).flatten(2)
    for _ in range(3):
        x = recurrent(p, torch.gru, 3, x, 900, directions=2)
    return dense(p, x.flatten(0, 1), letters).view(x.shape[0], -1, letters)
