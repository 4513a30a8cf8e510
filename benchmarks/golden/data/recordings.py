#!/usr/bin/env python3
"""What the reference decoder (flac) makes of the recordings of a real set: for each a
line of path, number of samples, and sha256 of the samples as 16 bits, low byte first.

    recordings.py SETS OUT      needs Python 3 and flac 1.4 on the PATH
"""
import glob
import hashlib
import os
import subprocess
import sys

SETS, OUT = sys.argv[1:]
with open(OUT, "w") as f:
    for path in sorted(glob.glob(os.path.join(SETS, "librispeech", "**", "*.flac"), recursive=True)):
        raw = subprocess.run(["flac", "-s", "-d", "-c", "--force-raw-format", "--endian=little", "--sign=signed", path], stdout=subprocess.PIPE, check=True).stdout
        f.write("%s\t%d %s\n" % (os.path.relpath(path, SETS), len(raw) // 2, hashlib.sha256(raw).hexdigest()))
