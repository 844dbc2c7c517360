import numpy as np
import pytest

from isoroc.paper import _cache as module
from isoroc.paper._cache import Cache


def counter():
    calls = []

    def compute():
        calls.append(1)
        return {"found": np.arange(3.0), "count": np.array(len(calls))}

    return compute, calls


def test_results_are_reused(tmp_path):
    compute, calls = counter()
    key = ("name", 3, np.eye(2))
    first = Cache(tmp_path).get("tree", key, compute)
    again = Cache(tmp_path)
    second = again.get("tree", ("name", 3, np.eye(2)), compute)
    assert len(calls) == 1
    assert (again.n_computed, again.n_reused) == (0, 1)
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


@pytest.mark.parametrize(
    "other",
    [
        ("name", 4, np.eye(2)),
        ("another", 3, np.eye(2)),
        ("name", 3, 1 - np.eye(2)),
        ("name", 3, np.eye(2).astype(np.float32)),
        ("name", 3, np.eye(2).reshape(1, 4)),
        ("name3", np.eye(2)),
    ],
)
def test_another_key_gives_another_result(tmp_path, other):
    compute, calls = counter()
    cache = Cache(tmp_path)
    cache.get("tree", ("name", 3, np.eye(2)), compute)
    cache.get("tree", other, compute)
    assert len(calls) == 2
    assert cache.n_computed == 2


def test_no_result_outlives_the_code_that_computed_it(tmp_path, monkeypatch):
    compute, calls = counter()
    Cache(tmp_path).get("tree", (1,), compute)
    monkeypatch.setattr(module, "_code", lambda: b"changed")
    Cache(tmp_path).get("tree", (1,), compute)
    assert len(calls) == 2


def test_the_digest_covers_the_code_of_the_package(tmp_path, monkeypatch):
    source = tmp_path / "__init__.py"
    source.write_text("x = 1")
    monkeypatch.setattr("isoroc.__file__", str(source))
    digests = set()
    for text in ("x = 1", "x = 2"):
        source.write_text(text)
        digests.add(module._code.__wrapped__())
    (tmp_path / "fast.so").write_bytes(b"code")
    digests.add(module._code.__wrapped__())
    (tmp_path / "notes.txt").write_text("not code")
    assert module._code.__wrapped__() in digests
    assert len(digests) == 3


def test_nothing_is_kept_without_a_folder():
    compute, calls = counter()
    cache = Cache(None)
    for _ in range(2):
        cache.get("tree", (1,), compute)
    assert len(calls) == cache.n_computed == 2


def test_an_interrupted_computation_leaves_no_file(tmp_path):
    def fail():
        raise KeyboardInterrupt

    folder = tmp_path / "new" / "cache"
    with pytest.raises(KeyboardInterrupt):
        Cache(folder).get("tree", (1,), fail)
    assert not folder.exists()
    compute, _ = counter()
    Cache(folder).get("tree", (1,), compute)
    (path,) = folder.iterdir()
    assert path.name.startswith("tree-")
    assert path.suffix == ".npz"
