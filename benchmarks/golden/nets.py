"""The models, written in PyTorch after the papers and MXNet's scripts.

Each function takes its blocks from p in the order in which the published lists have
them, and returns scores. Nothing here knows of the Go code.
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
    """Without dropout, which is random."""
    x = F.relu(conv_bias(p, x, 32, 5))
    x = F.relu(conv_bias(p, x, 64, 5))
    x = F.max_pool2d(x, 3, 2)
    for filters in [64, 64, 128]:
        x = F.relu(conv_bias(p, x, filters, 3))
    x = F.max_pool2d(x, 3, 2)
    for filters in [256, 256]:
        x = F.relu(conv_bias(p, x, filters, 3))
    return dense(p, torch.flatten(F.avg_pool2d(x, 9, 1), 1), classes)


def cnn_rand(p, tokens, classes, vocabulary=500):
    """tokens [N, T]"""
    x = F.embedding(tokens, p.weights(vocabulary, 300)).unsqueeze(1)
    towers = []
    for width in [3, 4, 5]:
        w, b = p.weights(100, 1, width, 300), p.bias(100)
        towers.append(F.relu(F.conv2d(x, w, b)).squeeze(3).amax(dim=2))
    return dense(p, torch.cat(towers, dim=1), classes)


def cifar_small(p, x, classes):
    for filters in [16, 32, 64]:
        x = F.relu(F.max_pool2d(norm(p, conv(p, x, filters, 3), 1e-5), 2, 2))
    return dense(p, torch.flatten(x, 1), classes)
