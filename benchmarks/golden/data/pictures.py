#!/usr/bin/env python3
"""What an independent decoder (djpeg of libjpeg-turbo, which does not smooth chroma when
it enlarges it) makes of the pictures of real sets: for each a line of path, width,
height, channels, and the mean of each channel in each of 3 by 3 cells, row by row.

    pictures.py SETS OUT       SETS holds imagenet, caltech101, caltech256, ndsb1
"""
import io
import os
import subprocess
import sys

from PIL import Image, ImageStat

SETS, OUT = sys.argv[1:]
# Every picture of a set, or every 5th or 10th.
EVERY = {"imagenet": 1, "caltech256": 1, "caltech101": 5, "ndsb1": 10}

lines = []
for name, every in EVERY.items():
    files = sorted(
        os.path.relpath(os.path.join(folder, f), SETS)
        for folder, _, files in os.walk(os.path.join(SETS, name))
        for f in files
        if f.lower().endswith((".jpg", ".jpeg"))
    )
    for path in files[::every]:
        plain = subprocess.run(["djpeg", "-nosmooth", os.path.join(SETS, path)], stdout=subprocess.PIPE, check=True).stdout
        picture = Image.open(io.BytesIO(plain))
        w, h = picture.size
        means = []
        for y in range(3):
            for x in range(3):
                cell = picture.crop((w * x // 3, h * y // 3, w * (x + 1) // 3, h * (y + 1) // 3))
                means += ["%.1f" % m for m in ImageStat.Stat(cell).mean]
        lines.append("%s\t%d %d %d %s" % (path, w, h, len(picture.getbands()), " ".join(means)))

with open(OUT, "w") as f:
    f.write("\n".join(lines) + "\n")
