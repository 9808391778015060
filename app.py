"""The app: drop a photo into a browser and see what a Vision Transformer makes of it. Start it: python app.py"""

import gc
import os
import sys

# Torch's threads sleep until there is work, and leave the cores to others: read when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if __name__ == "__main__":
    gc.disable()  # until the page is served, see `all_stays`: this is before torch is imported
    from vit.__main__ import main

    sys.exit(main(["app", *sys.argv[1:]]))
