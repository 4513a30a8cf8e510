"""Weights and batches of the golden references: pure functions of counters.

Value i of stream k is u(k, i) = mix(k + (i+1)*G) in 64 bits, and a key is folded
out of its parts; mix is the finaliser of SplitMix64. The Go side is package
internal/rng; this is a second implementation from its description:

    key(a, b, ...)   h = G; for each part p: h = mix(h ^ mix(p + G))
    real(k, i)       (u(k, i) >> 11) / 2^53                     uniform in [0, 1)
    below(k, i, n)   high 64 bits of u(k, i) * n                uniform in 0..n-1

Block b has key(SEED, 1, b), the pixels key(SEED, 2), the labels key(SEED, 3), the
tokens key(SEED, 4), the elements of block b's gradient that are kept
key(SEED, 5, b). With r = 2*real - 1, an element of a block is

    gamma of a norm             0.5 + r/10
    beta of a norm              r + 2, or r - 2 where r < -0.4
    bias                        r/10
    weights [out, a, b, ...]    r * sqrt(6 / (a*b*...))

a pixel is r; all are rounded to float32.

With such gammas and betas what goes into a ReLU behind a norm is hardly ever near 0,
and a third of the channels are shut. Else some of the million ReLUs of a deep net
open in float32 that are shut in float64, and gradients differ by 3 % of their norm
between PyTorch and PyTorch.

Input i of a model of sequences, in the order in which data sets give the inputs, has
key(SEED, 6, i), and what its values need besides key(SEED, 7, i):

    ids      from + below(key(SEED, 6, i), j, limit - from)
    lengths  most - below(key(SEED, 6, i), e, most//2 + 1)      of example e
    sounds   r, behind the length of a recording as well
    bags     ids, of which bag b has 1 + below(key(SEED, 7, i), b, most); padding behind
    next     ids, of which example e has most-1 - below(key(SEED, 7, i), e, (most-1)//2 + 1),
             then END and padding
    before   BEGIN and the words of next; padding where that has it
"""

import numpy as np

SEED = 20180423
PADDING, BEGIN, END, WORDS = 0, 2, 3, 4  # words of a translation; the first that is one
G = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def key(*parts):
    h = G
    for p in parts:
        h = mix(h ^ mix((p + G) & MASK))
    return h


def below(k, i, n):
    return (mix((k + (i + 1) * G) & MASK) * n) >> 64


def signed(k, n):
    """r of values 0..n-1 of a stream, as float64."""
    with np.errstate(over="ignore"):
        z = np.uint64(k) + (np.arange(1, n + 1, dtype=np.uint64)) * np.uint64(G)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return 2 * ((z >> np.uint64(11)).astype(np.float64) / 2.0**53) - 1


def float32(r):
    """r rounded to float32, as float64."""
    return r.astype("float32").astype("float64")


def ids(i, shape, start, limit):
    """Integers in [start, limit) for input i of a model of sequences."""
    k = key(SEED, 6, i)
    return start + np.array([below(k, j, limit - start) for j in range(int(np.prod(shape)))]).reshape(shape)


def lengths(k, n, most):
    return np.array([most - below(k, e, most // 2 + 1) for e in range(n)])


def bags(i, n, most, rows):
    """n bags of up to most ids below rows, padded with rows."""
    k = key(SEED, 7, i)
    x = ids(i, (n, most), 0, rows)
    for b, bag in enumerate(x):
        bag[1 + below(k, b, most) :] = rows
    return x


def translation(i, n, most, words):
    """What a decoder reads, which is input i-1, and what it shall write, input i."""
    after = ids(i, (n, most), WORDS, words)
    before = np.full_like(after, PADDING)
    for e, length in enumerate(lengths(key(SEED, 7, i), n, most - 1)):
        before[e, 0], before[e, 1 : length + 1] = BEGIN, after[e, :length]
        after[e, length], after[e, length + 1 :] = END, PADDING
    return before, after
