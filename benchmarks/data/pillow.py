"""Decodes pictures with Pillow and prints how many a second of processor time."""
import glob, json, sys, time
from PIL import Image

job = json.loads(sys.argv[1])
files = sorted(f for f in glob.glob(job["files"]) if f.lower().endswith((".jpg", ".jpeg", ".png")))
side, mode = job["side"], "L" if job["grey"] else "RGB"


def make(file):
    with Image.open(file) as image:
        image = image.convert(mode)
        w, h = image.size
        box = None
        if job["square"]:
            s = min(w, h)
            x, y = (w - s) // 2, (h - s) // 2
            box = (x, y, x + s, y + s)
        return image.resize((side, side), Image.BILINEAR, box=box)


make(files[0])
n, begin = 0, time.process_time()
while n < min(len(files), 2000) or time.process_time() - begin < job["least"]:
    make(files[n % len(files)])
    n += 1
print(n / (time.process_time() - begin))
