"""Models on disk: what was saved comes back, and nothing else gets in."""

import io
import json
import os
import pickle
import zipfile
from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from ihgmm import PSC, IhGMM, IhSC, Recipe, SphericalKMeans, make_ihgmm
from ihgmm.storage import StorageError, load_model, load_saved, save_model

X, LABELS = make_ihgmm(90, 15, 3, separation_constant=1.0, random_state=0)
NEW, _ = make_ihgmm(50, 15, 3, separation_constant=1.0, random_state=1)
MODELS = {
    "IhSC": IhSC(3, random_state=0),
    "whitened": IhSC(3, whiten="learned", random_state=0),
    "signed": IhSC(3, signed=True, random_state=0),
    "auto": IhSC("auto", recipe=Recipe(gram="cosine"), random_state=0),
    "IhGMM": IhGMM(3, random_state=0),
    "class": IhGMM(3, noise="class", random_state=0),
    "common": IhGMM(np.int64(3), noise="common", random_state=0),
    "PSC": PSC(3, random_state=np.random.RandomState(0)),
    "SphericalKMeans": SphericalKMeans(3, init=X[:3]),
    "scaled": make_pipeline(StandardScaler(), IhSC(3, random_state=0)),
    "centred": make_pipeline(StandardScaler(with_std=False), PSC(3, random_state=0)),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the bytes of a saved model."""
    path = tmp_path_factory.mktemp("whole") / "model.npz"
    save_model(IhSC(3, random_state=0).fit(X), path)
    return path.read_bytes()


def assert_same(one, two):
    """Raise unless two values are the same, part by part and to the last bit."""
    assert type(one) in (type(two), int, float)
    if is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(two, field.name))
    elif isinstance(one, tuple):
        for i, j in zip(one, two, strict=True):
            assert_same(i, j)
    else:
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MODELS)
def test_round_trip(path, name, dtype):
    model = MODELS[name].fit(X.astype(dtype))
    save_model(model, path)
    again = load_model(path)
    assert type(again) is type(model)
    rows = NEW.astype(dtype)
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    for method in ("transform", "predict_proba", "score_samples"):
        if hasattr(model, method):
            one, two = (getattr(m, method)(rows) for m in (model, again))
            np.testing.assert_array_equal(one, two)
            assert one.dtype == two.dtype
    one, two = (m[-1] if hasattr(m, "steps") else m for m in (model, again))
    assert set(vars(two)) == set(vars(one))
    for key, value in vars(one).items():
        if key.endswith("_"):
            assert_same(getattr(two, key), value)
    if hasattr(one, "scales_"):
        np.testing.assert_array_equal(two.sizes_, one.sizes_)
    before, after = one.get_params(), two.get_params()
    for key in set(before) - {"random_state", "init"}:
        assert after[key] == before[key]


@pytest.mark.filterwarnings("ignore:X has 1 distinct row", "ignore:X has the entry")
@pytest.mark.parametrize("unit", [1e200, 1e-200, 0.0])
def test_models_of_extreme_data(path, unit):
    rows = unit * X + (unit == 0)  # 0: rows that are all the same
    options = [{"signed": True}, {"outliers": 0.1, "missing": "fit"}, {"refine": True}]
    options += [{"whiten": "learned"}] if unit else []
    models = [IhSC(3, random_state=0, **option) for option in options]
    noises = ("individual", "class", "common", "tied")
    models += [IhGMM(3, noise=noise, random_state=0) for noise in noises]
    for model in models:
        save_model(model.fit(rows), path)
        again = load_model(path)
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


def test_mixture_can_sample_again(path):
    model = IhGMM(3, random_state=0).fit(X)
    save_model(model, path)
    one, two = model.sample(20), load_model(path).sample(20)
    np.testing.assert_array_equal(one[0], two[0])


def test_feature_names(path):
    names = [f"gene {i}, <b>" for i in range(14)] + ["é\u202e" + "x" * 10_000]
    table = pd.DataFrame(X, columns=names)
    for model in (MODELS["IhSC"], MODELS["scaled"]):
        save_model(model.fit(table), path)
        again = load_model(path)
        assert list(again.feature_names_in_) == names
        np.testing.assert_array_equal(again.predict(table), model.predict(table))
        with pytest.raises(ValueError, match="feature names"):
            again.predict(table[names[::-1]])
    save_model(IhSC(3, random_state=0).fit(X), path, feature_names=names)
    assert list(load_model(path).feature_names_in_) == names
    for wrong in (names[:-1], [names[0]] * 15):
        with pytest.raises(StorageError, match="the model has 15 features"):
            save_model(IhSC(3, random_state=0).fit(X), path, feature_names=wrong)


@pytest.mark.parametrize("name", ["customer", "", "é\u202e\x1b[2J" + "x" * 10_000])
def test_columns_of_the_fit(path, name):
    model = MODELS["scaled"].fit(X)
    save_model(model, path, id_column=name, label_column=name[::-1])
    saved = load_saved(path)
    assert (saved.id_column, saved.label_column) == (name, name[::-1])
    np.testing.assert_array_equal(saved.model.predict(NEW), model.predict(NEW))
    save_model(model, path)
    assert (load_saved(path).id_column, load_saved(path).label_column) == (None, None)
    with pytest.raises(StorageError, match=r"id_column is 3, where str \| None is"):
        save_model(model, path, id_column=3)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_scaler_that_leaves_zero_alone(path, make):
    rows = make(np.where(abs(X) > 2, X, 0) * 10.0 ** np.arange(X.shape[1]))
    scaler = StandardScaler(with_mean=False)
    model = make_pipeline(scaler, IhSC(3, random_state=0)).fit(rows)
    save_model(model, path)
    again = load_model(path)
    assert not again[0].with_mean
    np.testing.assert_array_equal(again[0].scale_, scaler.scale_)
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


def test_same_model_same_bytes_and_a_plain_file(path):
    model = IhSC(3, random_state=0).fit(X)
    save_model(model, path)
    first = path.read_bytes()
    save_model(model, path)
    assert path.read_bytes() == first
    assert os.listdir(path.parent) == ["model.npz"]
    with np.load(path, allow_pickle=False) as archive:  # also without ihgmm
        np.testing.assert_array_equal(
            archive["cluster_centers_"], model.cluster_centers_
        )
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
    assert header["format"] == "ihgmm-model"
    assert list(header["model"]) == ["IhSC"]


@pytest.mark.parametrize(
    "model",
    [
        KMeans(3, n_init=1),
        make_pipeline(Normalizer(), IhSC(3)),
        make_pipeline(StandardScaler(), KMeans(3, n_init=1)),
        type("IhSC", (IhSC,), {})(3),
        "model",
    ],
)
def test_other_models_are_refused(path, model):
    with pytest.raises(StorageError, match="cannot be saved; give one of IhSC, IhGMM"):
        save_model(model.fit(X) if hasattr(model, "fit") else model, path)
    assert not path.exists()


def test_not_fitted(path):
    with pytest.raises(NotFittedError, match="call fit before saving"):
        save_model(IhSC(3), path)


def test_nothing_is_left_where_writing_fails(path, monkeypatch):
    path.write_text("kept")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        save_model(IhSC(3, random_state=0).fit(X), path)
    assert path.read_text() == "kept"
    assert os.listdir(path.parent) == ["model.npz"]


def npy(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def rewritten(path, change, compression=zipfile.ZIP_STORED):
    """Write the saved model again with its parts changed."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(parts.pop("header.json"))
    change(header, parts)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("header.json", json.dumps(header))
        for name, content in parts.items():
            archive.writestr(name, content)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def lie(shape):
    """An array file that claims a shape."""
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + b"\0" * 8


def put(key, value):
    """Return a change of a part of the header; keys lead to it."""

    def change(header, _):
        *path, last = key.split("/")
        for step in path:
            header = header[int(step) if step.isdigit() else step]
        header[last] = value

    return change


def put_array(name, content):
    return lambda _, parts: parts.update({f"{name}.npy": content})


NAN = np.full((3, 15), np.nan)
CODE = b"__import__('os').mkdir('executed')+1}"
MODEL = "model/IhSC/"
PLACE = MODEL + "placement_/Placement/embedding/Embedding/"
WRONG = {
    "newer": (put("version", 5), "format 5, written by ihgmm '0.*Use the version"),
    "other": (put("format", "x"), "is no model of ihgmm"),
    "class": (put("model", {"os.system": {}}), "class 'os.system'; known are IhSC"),
    "no class": (put("model", []), "class None; known are IhSC"),
    "parameter": (put(MODEL + "shell", 1), "IhSC has no parameter or attribute shell"),
    "nested": (put(MODEL + "n_clusters", [1]), r"n_clusters is \[1\], where Un"),
    "value": (put(MODEL + "n_clusters", -3), "n_clusters=-3 is too small"),
    "recipe": (put(MODEL + "recipe", "odd"), "recipe='odd' is not known"),
    "count": (put(MODEL + "n_clusters_", 4), "n_clusters_=4 and there are 3 centres"),
    "number": (put(MODEL + "n_iter_", "3"), "n_iter_ is '3', where int is wanted"),
    "below": (put(MODEL + "n_iter_", -1), "n_iter_ holds -1, which is out of range"),
    "names": (put(MODEL + "feature_names_in_", ["a"]), "has 1 different names"),
    "ids": (put("id_column", ["a"]), r"id_column is \['a'\], where str"),
    "known": (put("label_column", 7), "label_column is 7, where str"),
    "features": (put(MODEL + "n_features_in_", 10**12), "does not fit the other"),
    "no features": (put(MODEL + "n_features_in_", None), "n_features_in_ is None"),
    "scaler": (put("scaler", {"with_mean": 1}), "class 'with_mean'; known are Stand"),
    "preparation": (
        put(MODEL + "preparation_", [{"x": {}}]),
        r"preparation_.0 is {'x'",
    ),
    "parts": (put(MODEL + "preparation_", [{"Filler": {}}]), "other parts than a Fill"),
    "placement": (
        put(MODEL + "placement_", {"Filler": {}}),
        r"placement_ is {'Filler'",
    ),
    "rank": (put(PLACE + "rank", "3"), "embedding.rank is '3', where int is wanted"),
    "no rank": (put(PLACE + "rank", -1), "embedding.rank holds -1, which is out of"),
    "longest": (put(PLACE + "longest", "nan"), "longest holds nan, which is out of"),
    "unit": (put(PLACE + "unit", 0.0), "embedding.unit holds 0, which is out of"),
    "diagonal": (put(PLACE + "diagonal", "odd"), "diagonal is 'odd', where Literal"),
    "huge unit": (put(PLACE + "unit", 10**400), "embedding.unit is 1000"),
    "no array": (put(PLACE + "directions", {"array": "x"}), "the array 'x' is missing"),
    "twice": (
        put(MODEL + "scales_", {"array": "labels_"}),
        "'labels_' is missing|does",
    ),
    "missing": (lambda _, parts: parts.pop("labels_.npy"), "'labels_' is missing"),
    "gone": (lambda header, _: header["model"]["IhSC"].pop("space_"), "space_ is miss"),
    "extra": (put_array("more", npy(X)), "'more' does not belong in it"),
    "init": (put_array("init", npy(X)), "'init' does not belong in it"),
    "half": (put_array("scales_", npy(np.ones(90, "f2"))), "holds float16 entries"),
    "object": (
        put_array("labels_", npy(np.array([Evil()] * 90), allow_pickle=True)),
        "'labels_.npy' holds object entries; models hold numbers only",
    ),
    "pickle": (put_array("labels_", pickle.dumps(Evil())), "is not an array"),
    "syntax": (
        put_array("labels_", npy(LABELS).replace(b"shape", b"((((")),
        "'labels_.npy' is not an array",
    ),
    "code": (
        put_array("labels_", npy(LABELS).replace(b"(90,), }" + b" " * 29, CODE)),
        "'labels_.npy' is not an array",
    ),
    "text": (put_array("labels_", npy(np.array(["a"] * 90))), "holds <U1"),
    "shape": (put_array("scales_", npy(np.ones(3))), "shape .3,., which does"),
    "huge": (put_array("scales_", lie((2**62,))), "says that its shape is"),
    "overflow": (put_array("scales_", lie((2**40, 2**40))), "says that its"),
    "nothing": (put_array("scales_", lie((10**23, 0))[:-8]), "says that its"),
    "truth": (put_array("scales_", lie((True,))), "says that its shape"),
    "negative": (put_array("scales_", lie((-1, -1))), "says that its shape"),
    "labels": (put_array("labels_", npy(np.full(90, 7))), "labels_ holds 7, which is"),
    "floats": (put_array("labels_", npy(np.zeros(90))), "labels_ holds float64"),
    "nan": (put_array("cluster_centers_", npy(NAN)), "centers_ holds nan, which is"),
    "many": (
        lambda _, parts: parts.update({f"{i}.npy": npy(X) for i in range(70)}),
        "it has 82 members",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_a_model_is_refused(path, whole, name, monkeypatch):
    monkeypatch.chdir(path.parent)
    path.write_bytes(whole)
    change, message = WRONG[name]
    rewritten(path, change)
    with pytest.raises(StorageError, match=message):
        load_model(path)
    assert not os.path.exists("executed")


def with_first(name, value):
    """Return a change of a file: the first entry of one of its arrays."""

    def change(_, parts):
        array = np.load(io.BytesIO(parts[f"{name}.npy"]))
        array.flat[0] = value
        parts[f"{name}.npy"] = npy(array)

    return change


@pytest.mark.parametrize("noise", ["individual", "class", "common", "tied"])
def test_no_infinity_reaches_a_prediction(path, noise):
    model = IhGMM(3, noise=noise, random_state=0).fit(X)
    save_model(model, path)
    whole = path.read_bytes()
    changes = [
        ("noise_levels_", np.nan),
        ("weights_", np.nan),
        ("memberships_", np.inf),
    ]
    if noise != "individual":  # else predictions do not depend on them
        changes += [("center_errors_", np.inf), ("center_errors_", np.nan)]
    for name, value in changes:
        path.write_bytes(whole)
        rewritten(path, with_first(name, value))
        with pytest.raises(StorageError, match=f"{name} holds|is not finite"):
            load_model(path)


def test_parameters_that_the_attributes_do_not_fit(path):
    save_model(IhGMM(3, random_state=0).fit(X), path)
    whole = path.read_bytes()
    for place, noise, message in (
        ("noise_", "tied", "do not fit together"),
        ("noise_", "loud", "noise_ is"),
        ("noise", "loud", "noise is 'loud'"),
    ):
        path.write_bytes(whole)
        rewritten(path, put(f"model/IhGMM/{place}", noise))
        with pytest.raises(StorageError, match=message):
            load_model(path)


DIVISORS = {
    "weights_": IhGMM(3, random_state=0),
    "component_levels_": IhGMM(3, noise="tied", random_state=0),
    "outlier_rule_.lengths": IhSC(3, outliers=0.05, random_state=0),
    "scaler.scale_": make_pipeline(StandardScaler(), IhSC(3, random_state=0)),
}


@pytest.mark.parametrize("name", DIVISORS)
def test_no_prediction_divides_by_zero(path, name):
    save_model(DIVISORS[name].fit(X), path)
    whole = path.read_bytes()
    for value in (0.0, -1.0):
        path.write_bytes(whole)
        rewritten(path, with_first(name, value))
        key = name.removeprefix("scaler.")
        with pytest.raises(StorageError, match=f"{key} holds {value:g}, which is out"):
            load_model(path)


def test_scaler_without_its_means(path):
    save_model(DIVISORS["scaler.scale_"].fit(X), path)
    rewritten(path, put("scaler/StandardScaler/mean_", None))
    with pytest.raises(StorageError, match=r"'scaler\.mean_' does not belong"):
        load_model(path)


def test_bombs(path, whole):
    path.write_bytes(whole)
    rewritten(path, lambda *_: None, zipfile.ZIP_DEFLATED)
    with pytest.raises(StorageError, match="compressed, which models never are"):
        load_model(path)
    path.write_bytes(whole)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Dupl"):
        archive.writestr("labels_.npy", npy(LABELS))
    with pytest.raises(
        StorageError, match=r"model\.npz: .* two of its members share a"
    ):
        load_model(path)
    # A directory that names the same bytes again and again, or more than there are.
    size = len(npy(LABELS))
    claimed = whole.replace(size.to_bytes(4, "little"), (10**9).to_bytes(4, "little"))
    assert claimed != whole
    path.write_bytes(claimed)
    with pytest.raises(StorageError, match="claims to hold more than its"):
        load_model(path)


def test_every_cut_is_noticed(path, whole):
    for length in range(0, len(whole), 997):
        path.write_bytes(whole[:length])
        with pytest.raises(StorageError, match="is no model, or only a part of one"):
            load_model(path)


def test_every_flipped_byte_is_noticed_or_harmless(path):
    # A checksum stands over every array and the header.
    model = SphericalKMeans(3, random_state=0).fit(X)
    save_model(model, path)
    raw = path.read_bytes()
    for place in range(5, len(raw), 211):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 255]) + raw[place + 1 :])
        try:
            again = load_model(path)
        except StorageError:
            continue
        np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))


def test_header_that_cannot_be_read(path):
    for header in (b"{", b"[1]", b"\xff", b"[" * 10**6):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("header.json", header)
        with pytest.raises(StorageError, match=r"header\.json"):
            load_model(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", npy(X))
    with pytest.raises(StorageError, match=r"it has no header\.json"):
        load_model(path)


def test_no_such_file(path):
    with pytest.raises(FileNotFoundError, match=r"model\.npz"):
        load_model(path)
