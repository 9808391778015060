"""The app: drop a photo into a browser and see what a Vision Transformer makes of it. Start it: python app.py"""

import sys

from vit.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["app", *sys.argv[1:]]))
