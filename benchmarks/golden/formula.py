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
"""

import numpy as np

SEED = 20180423
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
