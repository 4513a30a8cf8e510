#!/usr/bin/env python3
"""Makes the FLAC streams of data/audio/testdata with the reference encoder (flac),
and what the samples of each are, in flac.json: of a stream that was encoded the
samples that went in, of one that is written here bit by bit the samples that the
reference decoder gets out.

    flac.py OUT        needs Python 3 and flac 1.4 on the PATH
"""
import hashlib
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

OUT = sys.argv[1]
os.makedirs(OUT, exist_ok=True)
TABLE = {}


def wave(path, rate, channels, bits, samples):
    """Writes interleaved samples as WAVE_FORMAT_EXTENSIBLE, high bits first."""
    width = (bits + 7) // 8
    shift = width * 8 - bits
    data = b"".join(((v << shift) + (128 if width == 1 else 0) & (1 << 8 * width) - 1).to_bytes(width, "little") for v in samples)
    fmt = struct.pack("<HHIIHHHHI", 0xFFFE, channels, rate, rate * channels * width, channels * width, 8 * width, 22, bits, 0)
    fmt += b"\x01\x00\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
    body = b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt + b"data" + struct.pack("<I", len(data)) + data
    with open(path, "wb") as f:
        f.write(b"RIFF" + struct.pack("<I", len(body)) + body)


def digest(samples):
    """sha256 over the samples as 32 bits, low byte first."""
    return hashlib.sha256(b"".join(struct.pack("<i", v) for v in samples)).hexdigest()


def record(name, rate, channels, bits, samples):
    TABLE[name] = {"rate": rate, "channels": channels, "bits": bits, "samples": len(samples) // channels, "sha256": digest(samples)}


def encode(name, samples, *options, rate=16000, channels=1, bits=16, pipe=False):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "in.wav")
        wave(path, rate, channels, bits, samples)
        target = os.path.join(OUT, name)
        command = ["flac", "-s", "-f", "--lax", "--no-padding", *options]
        if pipe:
            with open(target, "wb") as f:
                subprocess.run([*command, "-c", path], stdout=f, check=True)
        else:
            subprocess.run([*command, "-o", target, path], check=True)
    record(name, rate, channels, bits, samples)


def tone(n, bits, pitch=440, rate=16000, seed=1, noise=0.01):
    r = random.Random(seed)
    top = 2 ** (bits - 1) - 1
    return [max(-top - 1, min(top, round(top * (0.5 * math.sin(2 * math.pi * pitch * i / rate) + noise * (2 * r.random() - 1))))) for i in range(n)]


def together(*channels):
    return [v for frame in zip(*channels) for v in frame]


def noise(n, bits, seed=2):
    r = random.Random(seed)
    return [r.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1)) for _ in range(n)]


class Bits:
    """A stream that is written bit by bit."""

    def __init__(self):
        self.bits = []

    def put(self, value, n):
        self.bits += [(value >> (n - 1 - i)) & 1 for i in range(n)]

    def rice(self, value, k):
        u = value << 1 if value >= 0 else (-value << 1) - 1
        self.bits += [0] * (u >> k) + [1]
        self.put(u & (1 << k) - 1, k)

    def bytes(self):
        bits = self.bits + [0] * (-len(self.bits) % 8)
        return bytes(int("".join(map(str, bits[i : i + 8])), 2) for i in range(0, len(bits), 8))


def crc(data, poly, width):
    value = 0
    for byte in data:
        value ^= byte << (width - 8)
        for _ in range(8):
            value = (value << 1 ^ (poly if value >> (width - 1) else 0)) & (1 << width) - 1
    return value


def by_hand(name, size, subframe, bits=16):
    """Writes a stream of one frame of one channel and asks the reference decoder."""
    head = bytes([0xFF, 0xF8, 0x70, 0x08, 0, size - 1 >> 8, size - 1 & 255])
    b = Bits()
    subframe(b)
    frame = head + bytes([crc(head, 0x07, 8)]) + b.bytes()
    frame += struct.pack(">H", crc(frame, 0x8005, 16))
    info = struct.pack(">HH6xQ16x", size, size, 16000 << 44 | bits - 1 << 36 | size)
    path = os.path.join(OUT, name)
    with open(path, "wb") as f:
        f.write(b"fLaC\x80\x00\x00\x22" + info + frame)
    raw = subprocess.run(["flac", "-s", "-d", "-c", "--force-raw-format", "--endian=little", "--sign=signed", path], stdout=subprocess.PIPE, check=True).stdout
    record(name, 16000, 1, bits, list(struct.unpack("<%dh" % (len(raw) // 2), raw)))


def escaped(b):
    """Fixed predictor of order 1, four parts: Rice, escaped with 9 bits, escaped with none, Rice."""
    b.put(0b0_001001_0, 8)
    b.put(100, 16)
    b.put(0, 2), b.put(2, 4)
    b.put(3, 4)
    for i in range(15):
        b.rice((-1) ** i * i, 3)
    b.put(15, 4), b.put(9, 5)
    for i in range(16):
        b.put((i * 37 - 200) & 511, 9)
    b.put(15, 4), b.put(0, 5)
    b.put(0, 4)
    for i in range(16):
        b.rice(i % 3 - 1, 0)


def escaped_wide(b):
    """The same of the 5-bit kind, with order 0."""
    b.put(0b0_001000_0, 8)
    b.put(1, 2), b.put(1, 4)
    b.put(31, 5), b.put(13, 5)
    for i in range(16):
        b.put((i * 511 - 4000) & 8191, 13)
    b.put(17, 5)
    for i in range(16):
        b.rice(i * 300, 17)


def linear(b):
    """A predictor of its own of order 2: twice the last less the one before, at shift 3."""
    b.put(0b0_100001_1, 8), b.put(0b01, 2)  # two wasted bits
    b.put(5, 14), b.put(9, 14)
    b.put(5, 4), b.put(3, 5)  # precision 6, shift 3
    b.put(16, 6), b.put(-8 & 63, 6)
    b.put(0, 2), b.put(0, 4), b.put(1, 4)
    for i in range(30):
        b.rice(-1 if i % 4 == 0 else 0, 1)


def main():
    t = tone(3000, 16)
    encode("fixed.flac", t, "-0")
    encode("best.flac", t, "-8")
    encode("order-32.flac", t, "-8", "-l", "32", "-b", "1152")
    encode("many-parts.flac", tone(4096, 16, noise=0.2), "-8", "-r", "8", "-b", "4096")
    encode("block-16.flac", t[:100], "-b", "16")
    encode("block-4000.flac", tone(4001, 16), "-b", "4000")
    encode("silence.flac", [0] * 1000)
    encode("noise.flac", noise(1500, 16))
    encode("wasted.flac", [v & ~63 for v in t[:1500]])
    encode("one-sample.flac", [-5])
    with open(os.path.join(OUT, "no-sample.flac"), "wb") as f:
        f.write(b"fLaC\x80\x00\x00\x22" + struct.pack(">HH6xQ16x", 4096, 4096, 16000 << 44 | 15 << 36))
    record("no-sample.flac", 16000, 1, 16, [])
    encode("loudest.flac", [32767, -32768] * 300)
    encode("piped.flac", t[:1000], "--no-md5-sum", pipe=True)
    encode("tagged.flac", t[:500], "-T", "TITLE=a", "-S", "10x", "--padding=100")
    for bits in (8, 12, 20, 24, 32):
        encode("bits-%d.flac" % bits, tone(1000, bits, noise=0.3) + noise(200, bits), "-8", bits=bits)
    left, right = tone(1500, 16, 300), tone(1500, 16, 300, seed=7, noise=0.02)
    encode("mid-side.flac", together(left, right), "-m", channels=2)
    encode("left-side.flac", together(left, [v + i % 3 for i, v in enumerate(left)]), "-m", channels=2)
    encode("side-right.flac", together([v // 2 for v in left], [v // 2 for v in noise(1500, 16)]), "-m", channels=2)
    encode("stereo-32.flac", together(tone(600, 32, 300), tone(600, 32, 300, noise=0.02)), "-8", channels=2, bits=32)
    encode("channels-8.flac", together(*[tone(400, 16, 100 * c + 100) for c in range(8)]), "--channel-map=none", channels=8)
    for rate in (8000, 12345, 44100, 96000, 192000, 255000, 655350):
        encode("rate-%d.flac" % rate, t[:200], rate=rate)
    by_hand("escaped.flac", 64, escaped)
    by_hand("escaped-wide.flac", 32, escaped_wide)
    by_hand("linear.flac", 32, linear)
    with open(os.path.join(OUT, "id3.flac"), "wb") as f:
        f.write(b"ID3\x04\x00\x00\x00\x00\x01\x02" + bytes(130) + open(os.path.join(OUT, "fixed.flac"), "rb").read())
    TABLE["id3.flac"] = TABLE["fixed.flac"]
    with open(os.path.join(OUT, "flac.json"), "w") as f:
        f.write("{\n" + ",\n".join(" %s: %s" % (json.dumps(k), json.dumps(v)) for k, v in sorted(TABLE.items())) + "\n}\n")


main()
