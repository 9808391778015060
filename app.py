"""The app: drop a photo into a browser and see what a Vision Transformer makes of it. Start it: python app.py"""

import gc
import os
import sys

# Torch's threads sleep until there is work, and leave the cores to others: read when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if __name__ == "__main__":
    gc.disable()  # as `all_stays` does until the page is built: torch is imported before that
    from vit.__main__ import main

    sys.exit(main(["app", *sys.argv[1:]]))
