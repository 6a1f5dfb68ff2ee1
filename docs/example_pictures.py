"""Draw the pictures of the pages that examples make.

``python docs/example_pictures.py docs/images`` draws all that are in the folder, and
``python docs/example_pictures.py docs/images diagnosis`` that of one example.
"""

import runpy
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")  # so that showing a figure neither waits nor closes it
import matplotlib.pyplot as plt

EXAMPLES = Path(__file__).parents[1] / "examples"

if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    sys.argv = sys.argv[:1]
    for script in sorted(EXAMPLES.glob("plot_*.py")):
        name = script.stem.removeprefix("plot_").replace("_", "-")
        picture = Path(folder, f"{name}.png")
        if name in names or (not names and picture.exists()):
            runpy.run_path(str(script))
            plt.gcf().savefig(picture, dpi=110)
            plt.close("all")
