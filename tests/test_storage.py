"""Models on disk: what was saved comes back, and nothing else gets in."""

import io
import json
import os
import zipfile
from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import (
    CountVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import ihgmm
from ihgmm import Biwhitener, ColumnScaler, IhGMM, IhSC, make_ihgmm
from ihgmm.storage import StorageError, load_model, save_model

X, LABELS = make_ihgmm(90, 15, 3, separation_constant=1.0, random_state=0)
NEW, _ = make_ihgmm(50, 15, 3, separation_constant=1.0, random_state=1)
MODELS = {
    "IhSC": IhSC(3, random_state=0),
    "whitened": IhSC(3, columns="noise", random_state=0),
    "signed": IhSC(3, signed=True, random_state=0),
    "auto": IhSC("auto", recipe=ihgmm.Recipe(labels="kmeans"), random_state=0),
    "IhGMM": IhGMM(3, random_state=0),
    "class": IhGMM(3, noise="class", random_state=0),
    "common": IhGMM(np.int64(3), noise="common", random_state=0),
    "tied": IhGMM(3, noise="tied", random_state=0),
    "psc": IhSC(3, recipe="psc", random_state=np.random.RandomState(0)),
    "SphericalKMeans": ihgmm.SphericalKMeans(3, init=X[:3]),
    "scaled": make_pipeline(ColumnScaler("standardize"), IhSC(3, random_state=0)),
    "no mean": make_pipeline(ColumnScaler("scale"), IhSC(3, recipe="psc")),
    "steps": Pipeline(
        [("my units", ColumnScaler()), ("noise", Biwhitener("learned")), ("", IhSC(3))]
    ),
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


def assert_same(result, expected):
    """Raise unless two values are the same, part by part and to the last bit."""
    assert type(result) in (type(expected), int, float)

    if is_dataclass(result):
        for field in fields(result):
            assert_same(getattr(result, field.name), getattr(expected, field.name))
    elif isinstance(result, tuple):
        for value, expected_value in zip(result, expected, strict=True):
            assert_same(value, expected_value)
    else:
        assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MODELS)
def test_round_trip(path, name, dtype):
    model = MODELS[name].fit(X.astype(dtype))
    save_model(model, path)
    loaded = load_model(path)

    assert type(loaded) is type(model)

    rows = NEW.astype(dtype)

    assert_array_equal(loaded.predict(rows), model.predict(rows))

    for method in ("transform", "predict_proba", "score_samples"):
        if hasattr(model, method):
            expected = getattr(model, method)(rows)
            result = getattr(loaded, method)(rows)
            assert_array_equal(result, expected)
            assert result.dtype == expected.dtype

    if hasattr(model, "steps"):
        model = model[-1]
        loaded = loaded[-1]

    assert set(vars(loaded)) == set(vars(model))

    for key, value in vars(model).items():
        if key.endswith("_"):
            assert_same(getattr(loaded, key), value)
    if hasattr(model, "scales_"):
        assert_array_equal(loaded.sizes_, model.sizes_)

    params = model.get_params()
    loaded_params = loaded.get_params()
    for key in set(params) - {"random_state", "init"}:
        assert loaded_params[key] == params[key]


def test_feature_names(path):
    names = [f"gene {i}, <b>" for i in range(14)] + ["é\u202e" + "x" * 10_000]
    table = pd.DataFrame(X, columns=names)
    for model in (MODELS["IhSC"], MODELS["scaled"]):
        save_model(model.fit(table), path)
        loaded = load_model(path)
        assert list(loaded.feature_names_in_) == names
        assert_array_equal(loaded.predict(table), model.predict(table))
        with pytest.raises(ValueError, match="feature names"):
            loaded.predict(table[names[::-1]])

    # As the command does, each step learns the names; the last one gets arrays.
    steps = ColumnScaler().fit(table), MODELS["IhSC"].fit(table)
    save_model(make_pipeline(*steps), path)

    assert load_model(path).predict(table).shape == (len(X),)

    save_model(IhSC(3, random_state=0).fit(X), path, feature_names=names)

    assert list(load_model(path).feature_names_in_) == names

    with pytest.raises(StorageError, match="id_column is 3; give a text"):
        save_model(MODELS["scaled"], path, id_column=3)

    for bad_names in (names[:-1], [names[0]] * 15):
        with pytest.raises(StorageError, match="the model has 15 features"):
            save_model(IhSC(3, random_state=0).fit(X), path, feature_names=bad_names)


def test_same_model_same_bytes_and_a_plain_file(path):
    model = IhSC(3, random_state=0).fit(X)
    save_model(model, path)
    first_bytes = path.read_bytes()
    save_model(model, path)

    assert path.read_bytes() == first_bytes
    assert os.listdir(path.parent) == ["model.npz"]

    with np.load(path, allow_pickle=False) as archive:  # also without ihgmm
        assert_array_equal(archive["cluster_centers_"], model.cluster_centers_)
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))

    assert header["format"] == "ihgmm-model"
    assert list(header["model"][0]) == ["IhSC"]


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


WORDS = [["cat", "dog", "mouse", "purrs"], ["bond", "stock", "share", "falls"]]
TEXTS = [" ".join(np.random.default_rng(i).choice(WORDS[i % 2], 5)) for i in range(40)]


@pytest.mark.parametrize(
    "steps",
    [
        [TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), dtype=np.float32)],
        [TfidfVectorizer(use_idf=False, stop_words=["falls"])],
        [CountVectorizer(), TfidfTransformer(norm=None)],
        [CountVectorizer(vocabulary=[*WORDS[1], *WORDS[0]], binary=True)],
        [CountVectorizer(analyzer="char_wb"), ColumnScaler("scale")],
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Labels may be unstable")
def test_pipelines_of_texts(path, steps):
    model = make_pipeline(*steps, IhSC(2)).fit(TEXTS)
    save_model(model, path)
    loaded = load_model(path)

    assert [*loaded.named_steps] == [*model.named_steps]

    new_texts = ["A cat purrs.", "The stock falls, and with it the bond."]

    assert_array_equal(loaded.predict(new_texts), model.predict(new_texts))

    expected = model[:-1].transform(TEXTS)
    prepared = loaded[:-1].transform(TEXTS)

    assert prepared.dtype == expected.dtype
    assert_array_equal(prepared.toarray(), expected.toarray())

    for step, loaded_step in zip(model, loaded, strict=True):
        assert str(loaded_step) == str(step)

    assert_array_equal(clone(loaded).fit_predict(TEXTS), model[-1].labels_)


def test_steps_that_no_file_can_hold(path):
    scaled = make_pipeline(StandardScaler(), IhSC(3)).fit(X)

    with pytest.raises(StorageError, match="ColumnScaler, which can do what"):
        save_model(scaled, path)

    pipeline = make_pipeline(TfidfVectorizer(tokenizer=str.split), IhSC(2))

    with pytest.warns(UserWarning, match="token_pattern"):
        pipeline.fit(TEXTS)
    with pytest.raises(StorageError, match=r"TfidfVectorizer with tokenizer .* no f"):
        save_model(pipeline, path)

    pipeline = make_pipeline(TfidfVectorizer(), IhSC(2)).fit(TEXTS)

    with pytest.raises(StorageError, match="feature_names is given, and the model"):
        save_model(pipeline, path, feature_names=["a", "b"])
    with pytest.raises(StorageError, match="A model of str and IhSC cannot be"):
        save_model(make_pipeline("passthrough", IhSC(3)).fit(X), path)

    assert not path.exists()


def test_nothing_to_save_or_to_load(path):
    with pytest.raises(NotFittedError, match="fit before saving"):
        save_model(IhSC(3), path)
    with pytest.raises(FileNotFoundError, match=r"model\.npz"):
        load_model(path)


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


CODE = b"__import__('os').mkdir('executed')+1}"
MODEL = "model/0/IhSC/"
PLACE = MODEL + "placement_/Placement/embedding/Embedding/"
WRONG = {
    "another": (put("version", 6), "format 6, written by ihgmm '0.*Use the version"),
    "other": (put("format", "x"), "is no model of ihgmm"),
    "class": (put("model", [{"os.system": {}}]), "holds a 'os.system', which no model"),
    "steps": (put("model", [{"Recipe": {}}]), "Recipe.*which make no model"),
    "parameter": (put(MODEL + "shell", 1), "unexpected keyword argument 'shell'"),
    "value": (put(MODEL + "n_clusters", -3), "n_clusters=-3 is out of range"),
    "count": (put(MODEL + "n_clusters_", 4), "n_clusters_ and its 3 centres do not"),
    "names": (put(MODEL + "feature_names_in_", {"O": ["a"]}), "has 1 different names"),
    "features": (put(MODEL + "n_features_in_", 10**12), "do not fit together"),
    "placement": (put(MODEL + "placement_", {"array": "scales_"}), "do not fit togeth"),
    "no array": (put(PLACE + "directions", {"array": "x"}), "KeyError: 'x'"),
    "gone": (lambda header, _: header["model"][0]["IhSC"].pop("labels_"), "'labels_'"),
    "object": (
        put_array("labels_", npy(np.array([Evil()] * 90), allow_pickle=True)),
        "Object arrays cannot be loaded",
    ),
    "code": (
        put_array("labels_", npy(LABELS).replace(b"(90,), }" + b" " * 29, CODE)),
        "is no model, or only a part of one",
    ),
    "text": (put_array("labels_", npy(np.array(["a"] * 90))), "it holds <U1"),
    "lines": (put_array("scales_", npy(np.ones(3))), "scales_ and its 3 centres"),
    "huge": (put_array("scales_", lie((2**62,))), "or only a part of one"),
    "labels": (put_array("labels_", npy(np.full(90, 7))), "labels_ and its 3 centres"),
    "nan": (
        put_array("cluster_centers_", npy(np.full((3, 15), np.nan))),
        "cluster_centers_ is not finite",
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


SPOILED = [
    ("common", "center_errors_", np.inf),
    ("class", "center_errors_", np.nan),
    ("IhGMM", "memberships_", np.inf),
    ("IhGMM", "weights_", 0.0),
    ("tied", "component_levels_", 0.0),
    ("scaled", "step0.scale_", 0.0),
]


@pytest.mark.parametrize(("name", "array", "value"), SPOILED)
def test_no_prediction_divides_by_zero_or_is_infinite(path, name, array, value):
    save_model(MODELS[name].fit(X), path)

    def change(_, parts):
        spoiled = np.load(io.BytesIO(parts[f"{array}.npy"]))
        spoiled.flat[0] = value
        parts[f"{array}.npy"] = npy(spoiled)

    rewritten(path, change)

    with pytest.raises(StorageError, match=r"not finite|do not fit together"):
        load_model(path)


def test_bombs(path, whole):
    path.write_bytes(whole)
    rewritten(path, put_array("labels_", npy(np.zeros(10**6))), zipfile.ZIP_DEFLATED)

    with pytest.raises(StorageError, match="claims to hold more than its"):
        load_model(path)


def test_every_flipped_byte_is_noticed_or_harmless(path):
    # A checksum stands over every array and the header.
    model = ihgmm.SphericalKMeans(3, random_state=0).fit(X)
    save_model(model, path)
    raw = path.read_bytes()
    for place in range(5, len(raw), 211):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 255]) + raw[place + 1 :])
        try:
            loaded = load_model(path)
        except StorageError:
            continue
        assert_array_equal(loaded.predict(NEW), model.predict(NEW))


def counts():
    """Return counts of four kinds, of which roots are taken."""
    rng = np.random.default_rng(0)
    profiles = rng.gamma(0.5, size=60) + rng.gamma(0.5, size=(4, 60))
    means = 0.4 * rng.lognormal(size=(400, 1)) * profiles[np.arange(400) % 4]
    return rng.poisson(means).astype(float)


def with_whiten(model, value, path):
    """Save a model as ihgmm 0.4 did: with ``whiten``, and without what is newer."""
    save_model(model, path)

    def change(header, _):
        header["version"] = 7
        parts = header["model"][0]["IhSC"]
        parts["whiten"] = value
        del parts["columns"]
        del parts["columns_"]
        del parts["placement_"]["Placement"]["embedding"]["Embedding"]["roots"]

    rewritten(path, change)


def test_models_of_roots_keep_them(path):
    rows = counts()
    rows = rows[rows.any(axis=1)]
    model = IhSC(4).fit(rows)
    save_model(model, path)
    loaded = load_model(path)

    assert model.columns_.roots
    assert loaded.columns_ == model.columns_
    assert_array_equal(loaded.predict(rows), model.labels_)
    assert_array_equal(
        ihgmm.diagnose(rows, loaded).certainty, ihgmm.diagnose(rows, model).certainty
    )

    model.partial_fit(rows)
    loaded.partial_fit(rows)

    assert_array_equal(loaded.cluster_centers_, model.cluster_centers_)


def test_a_count_of_an_older_version_is_left_out(path):
    model = IhSC("auto", random_state=0).fit(X)
    save_model(model, path)

    assert str(load_model(path).selection_) == str(model.selection_)

    def change(header, _):
        header["version"] = 7
        (step,) = header["model"][0].values()
        tree = {"ClusterTree": {"n_rows": 90, "levels": [3]}}
        step["selection_"] = {
            "ClusterCount": {"n_clusters": 3, "rank": 3, "tree": tree}
        }

    rewritten(path, change)
    loaded = load_model(path)

    assert not hasattr(loaded, "selection_")
    assert loaded.n_clusters == "auto"
    assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    assert "<html" in loaded.report(X).html


@pytest.mark.filterwarnings("ignore::ihgmm.UnstableLabelsWarning")
@pytest.mark.parametrize(
    ("columns", "whiten", "loaded_columns"),
    [
        ("given", None, "given"),
        ("given", "auto", "given"),
        ("noise", "learned", "noise"),
        ("noise", "auto", "noise"),
        ("counts", "counts", "counts"),
    ],
)
def test_models_of_an_older_version(path, columns, whiten, loaded_columns):
    rows = counts()
    rows = rows[rows.any(axis=1)]
    model = IhSC(4, columns=columns, random_state=0).fit(rows)
    with_whiten(model, whiten, path)
    loaded = load_model(path)

    assert loaded.columns == loaded_columns
    assert_array_equal(loaded.predict(rows), model.labels_)
    assert "<html" in loaded.report(rows).html
