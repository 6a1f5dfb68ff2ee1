"""What is known about each data set: where it lives and what it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LIBSVM_FILES = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"
UCI_FILES = "https://archive.ics.uci.edu/ml/machine-learning-databases/"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A data set."""

    title: str
    about: str
    citation: str
    preprocessing: Literal["none", "zscore"]  # what reproduces the paper's table
    url: str = ""  # of the file; empty for data that scikit-learn ships
    layout: Literal["svmlight", "spaces", "commas"] = "svmlight"
    first_label: int = 1  # classes are numbered from here in the file
    counts: tuple[int, ...] = ()  # rows of each class, incomplete ones left out
    sums: tuple[float, ...] = ()  # what class_sums gives for the right content
    # Copies of a value may differ by this much. Upstream's segment and usps may be
    # scaled and rounded a little differently from the copies looked at here.
    precision: float = 1e-8
    feature_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The upstream file name, also used in the cache."""
        return self.url.rpartition("/")[2]


UCI = "UCI Machine Learning Repository. https://doi.org/10.24432/"
LIBSVM = (
    "\nChang, C.-C. and Lin, C.-J. (2011). LIBSVM: a library for support vector "
    "machines. ACM Transactions on Intelligent Systems and Technology 2(3), 27."
)
DIGITS = tuple("0123456789")


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


CATALOG: dict[str, Entry] = {
    "iris": Entry(
        title="Iris",
        about="Lengths and widths of sepals and petals of three species of iris.",
        citation="Fisher, R. A. (1936). The use of multiple measurements in taxonomic "
        "problems. Annals of Eugenics 7(2), 179-188.",
        preprocessing="none",
        counts=(50, 50, 50),
    ),
    "wine": Entry(
        title="Wine",
        about="Chemical analyses of wines from three cultivars of one region of Italy.",
        citation=f"Aeberhard, S. and Forina, M. (1992). Wine. {UCI}C5PC7J",
        preprocessing="zscore",
        counts=(59, 71, 48),
    ),
    "seeds": Entry(
        title="Seeds",
        about="Geometry of kernels of three varieties of wheat, from X-ray images.",
        citation="Charytanowicz, M., Niewczas, J., Kulczycki, P., Kowalski, P. and "
        f"Lukasik, S. (2010). Seeds. {UCI}C5H30K",
        preprocessing="zscore",
        url=f"{UCI_FILES}00236/seeds_dataset.txt",
        layout="spaces",
        counts=(70, 70, 70),
        sums=(-46.811052, -52.090791, 27.068778),
        feature_names=_names(
            "area, perimeter, compactness, kernel length, kernel width, asymmetry "
            "coefficient, kernel groove length"
        ),
        target_names=("Kama", "Rosa", "Canadian"),
    ),
    "dermatology": Entry(
        title="Dermatology",
        about="Clinical and microscopic findings, rated from 0 to 3, of patients with "
        "erythemato-squamous diseases. 8 of the 366 rows have no age and are left out.",
        citation=f"Ilter, N. and Guvenir, H. (1998). Dermatology. {UCI}C5FK5P",
        preprocessing="zscore",
        url=f"{UCI_FILES}dermatology/dermatology.data",
        layout="commas",
        counts=(111, 60, 71, 48, 48, 20),
        sums=(5.441362, 0.289888, 1.880251, -6.882340, -3.607264, 0.035196),
        feature_names=_names(
            "erythema, scaling, definite borders, itching, koebner phenomenon, "
            "polygonal papules, follicular papules, oral mucosal involvement, "
            "knee and elbow involvement, scalp involvement, family history, "
            "melanin incontinence, eosinophils in the infiltrate, PNL infiltrate, "
            "fibrosis of the papillary dermis, exocytosis, acanthosis, "
            "hyperkeratosis, parakeratosis, clubbing of the rete ridges, "
            "elongation of the rete ridges, thinning of the suprapapillary "
            "epidermis, spongiform pustule, munro microabcess, focal "
            "hypergranulosis, disappearance of the granular layer, vacuolisation "
            "and damage of basal layer, spongiosis, saw-tooth appearance of "
            "retes, follicular horn plug, perifollicular parakeratosis, "
            "inflammatory mononuclear infiltrate, band-like infiltrate, age"
        ),
        target_names=_names(
            "psoriasis, seborrheic dermatitis, lichen planus, pityriasis rosea, "
            "chronic dermatitis, pityriasis rubra pilaris"
        ),
    ),
    "dna": Entry(
        title="DNA",
        about="Windows of 60 bases of primate DNA; in the middle a boundary from exon "
        "to intron (ei), from intron to exon (ie), or neither (n). Three columns a "
        "base: is it A, C, G; T is none of them.",
        citation="Molecular Biology (Splice-junction Gene Sequences) (1991). "
        f"{UCI}C5M888. Prepared for Michie, D., Spiegelhalter, D. J. and Taylor, C. C. "
        f"(1994). Machine Learning, Neural and Statistical Classification.{LIBSVM}",
        preprocessing="zscore",
        url=f"{LIBSVM_FILES}dna.scale",
        counts=(464, 485, 1051),
        sums=(10.913855, 3.245173, -18.873814),
        feature_names=tuple(f"base_{i}_{b}" for i in range(1, 61) for b in "ACG"),
        target_names=("ei", "ie", "n"),
    ),
    "segment": Entry(
        title="Statlog segment",
        about="Colour and texture of 3 x 3 pixel regions of outdoor images, scaled to "
        "[-1, 1]. The column region-pixel-count is constant.",
        citation=f"Statlog (Image Segmentation) (1990). {UCI}C5P01G{LIBSVM}",
        preprocessing="none",
        url=f"{LIBSVM_FILES}segment.scale",
        precision=1e-5,
        counts=(330,) * 7,
        sums=(
            *(-83.156185, 132.737612, -204.990932, 203.986439, -20.174336),
            *(137.305611, -170.163248),
        ),
        feature_names=_names(
            "region-centroid-col, region-centroid-row, region-pixel-count, "
            "short-line-density-5, short-line-density-2, vedge-mean, vedge-sd, "
            "hedge-mean, hedge-sd, intensity-mean, rawred-mean, rawblue-mean, "
            "rawgreen-mean, exred-mean, exblue-mean, exgreen-mean, value-mean, "
            "saturation-mean, hue-mean"
        ),
        target_names=_names("brickface, sky, foliage, cement, window, path, grass"),
    ),
    "satimage": Entry(
        title="Statlog satimage",
        about="Landsat images of land: 3 x 3 pixels in four spectral bands, scaled to "
        "[-1, 1]; the class is that of the middle pixel.",
        citation=f"Srinivasan, A. (1993). Statlog (Landsat Satellite). {UCI}C55887"
        f"{LIBSVM}",
        preprocessing="none",
        url=f"{LIBSVM_FILES}satimage.scale",
        counts=(1072, 479, 961, 415, 470, 1038),
        sums=(-472.671066, 324.568549, -582.539878, 44.716282, 364.723995, 649.795059),
        feature_names=tuple(
            f"pixel_{i}_band_{b}" for i in range(1, 10) for b in range(1, 5)
        ),
        target_names=_names(
            "red soil, cotton crop, grey soil, damp grey soil, soil with "
            "vegetation stubble, very damp grey soil"
        ),
    ),
    "usps": Entry(
        title="USPS",
        about="Handwritten digits from envelopes, 16 x 16 grey values in [-1, 1]; the "
        "training part. The file numbers the digits 0 to 9 from 1 to 10.",
        citation="Hull, J. J. (1994). A database for handwritten text recognition "
        "research. IEEE Transactions on Pattern Analysis and Machine Intelligence "
        f"16(5), 550-554.{LIBSVM}",
        preprocessing="none",
        url=f"{LIBSVM_FILES}usps.bz2",
        precision=1e-6,
        counts=(1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644),
        sums=(
            *(568.489803, 857.957112, 206.462606, 225.803519, 278.060453),
            *(27.206365, 56.081050, 326.561389, 202.608907, 318.602283),
        ),
        feature_names=tuple(f"pixel_{i}_{j}" for i in range(16) for j in range(16)),
        target_names=DIGITS,
    ),
    "pendigits": Entry(
        title="Pendigits",
        about="Handwritten digits as eight points (x, y) along the path of a pen, from "
        "0 to 100; the training part.",
        citation="Alpaydin, E. and Alimoglu, F. (1996). Pen-Based Recognition of "
        f"Handwritten Digits. {UCI}C5MG6K{LIBSVM}",
        preprocessing="zscore",
        url=f"{LIBSVM_FILES}pendigits",
        first_label=0,
        counts=(780, 779, 780, 719, 780, 720, 720, 778, 719, 719),
        sums=(
            *(4.719902, 24.791974, -22.660455, 8.062316, 3.324495),
            *(-26.793040, -7.784405, -3.000270, -4.647694, -18.304207),
        ),
        feature_names=tuple(f"{axis}{i}" for i in range(1, 9) for axis in "xy"),
        target_names=DIGITS,
    ),
}
"""The data sets by name, in the order of the paper."""
