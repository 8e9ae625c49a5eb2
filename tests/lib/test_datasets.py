"""Datasets: search order, the owners' formats and their faults, digests, downloads."""

import gzip
import hashlib
import http.server
import json
import re
import threading
import zipfile
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import datasets, formats, journal, paths
from lib.errors import BookError

# One small file per owner's format: dataset, file, text, rows, first row.
SAMPLES = {
    "ml-1m": (
        "ratings.dat",
        "1::1193::5::978300760\n1::661::3::978302109\n2::1193::1::978298413\n",
        (1, 1193, 5.0, 978300760),
    ),
    "ml-20m": (
        "ratings.csv",
        "userId,movieId,rating,timestamp\n1,2,3.5,1112486027\n1,29,0.5,1112484676\n7,2,5.0,11\n",
        (1, 2, 3.5, 1112486027),
    ),
    "yelp-zip": (
        "metadata",
        "5044\t0\t1.0\t-1\t2014-11-16\n5045\t0\t1.0\t1\t2014-09-08\n5045\t3\t4.0\t1\t2013-10-06\n",
        (5044, 0, 1.0, -1, pd.Timestamp("2014-11-16")),
    ),
    "yelp-chi": (
        "metadata",
        "201 0 5.0 1 2011-06-08\n202 0 3.0 1 2011-08-30\n202 1 3.0 -1 2011-08-30\n",
        (201, 0, 5.0, 1, pd.Timestamp("2011-06-08")),
    ),
    "amazon-musical-instruments": (
        "Musical_Instruments_5.csv",
        "A2IBPI20UZIR0U,1384719342,5.0,1393545600,0,0\r\nNA,B00,4.0,1363392000,13,14\r\n"
        "A195EZSQDW3E21,B00,5.0,1377648000,1,1\r\n",
        ("A2IBPI20UZIR0U", "1384719342", 5.0, 1393545600, 0, 0),
    ),
    "hetrec2011-lastfm-2k": (
        "user_taggedartists.dat",
        "userID\tartistID\ttagID\tday\tmonth\tyear\r\n2\t52\t13\t1\t4\t2009\r\n"
        "2\t52\t15\t1\t4\t2009\r\n3\t53\t13\t1\t4\t2009\r\n",
        (2, 52, 13),
    ),
    "hetrec2011-movielens-2k": (
        "user_taggedmovies.dat",
        "userID\tmovieID\ttagID\tdate_day\tdate_month\tdate_year\tdate_hour\tdate_minute"
        "\tdate_second\r\n75\t353\t5290\t29\t\t10\t\t2006\t\t23\t\t20\t\t15\r\n"
        "78\t4223\t5264\t16\t4\t2007\t4\t43\t45\r\n127\t1343\t1544\t28\t8\t2007\t3\t42\t27\r\n",
        (75, 353, 5290),
    ),
}
TAG_NAMES = "tagID\ttagValue\r\n13\tchillout\r\n2863\ttropicália\r\n".encode("latin-1")


@pytest.fixture
def raw(tmp_path, monkeypatch):
    """A checkout without any data; returns a function that puts a file into data/raw/<name>.

    Its registry has no digests of files, so that samples may stand in for the owners' files.
    """
    root = tmp_path / "checkout"
    (root / "data").mkdir(parents=True)
    registry = (paths.CODE / "data" / "registry.yml").read_text("utf-8")
    registry = re.sub(r"(?<!sha256): [0-9a-f]{64}\b", ": null", registry)
    (root / "data" / "registry.yml").write_text(registry, "utf-8")
    monkeypatch.setenv("REGRETBOOK_ROOT", str(root))
    monkeypatch.delenv("REGRETBOOK_DATA", raising=False)
    return partial(put, root / "data" / "raw")


def put(place: Path, name: str, file: str, content: str | bytes) -> Path:
    path = place / name / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if name.startswith("hetrec") and not (path.parent / "tags.dat").exists():
        (path.parent / "tags.dat").write_bytes(TAG_NAMES)
    return path


def load(name: str) -> pd.DataFrame:
    return datasets.tags(name) if name.startswith("hetrec") else datasets.ratings(name)


@pytest.mark.parametrize("name", SAMPLES)
def test_each_format_plain_and_gzipped(raw, name):
    file, text, first = SAMPLES[name]
    plain = raw(name, file, text)
    frame, digest = load(name), datasets.digest(name)
    assert len(frame) == 3
    assert tuple(frame.iloc[0]) == first
    assert not frame.isna().any(axis=None)
    plain.unlink()
    raw(name, file + ".gz", gzip.compress(text.encode()))
    pd.testing.assert_frame_equal(load(name), frame)
    assert datasets.digest(name) == digest


def test_amazon_in_the_owners_json(raw):
    file, text, _ = SAMPLES["amazon-musical-instruments"]
    csv = raw("amazon-musical-instruments", file, text)
    expected = datasets.ratings("amazon-musical-instruments")
    csv.unlink()
    keys = ("reviewerID", "asin", "overall", "unixReviewTime")
    lines = [
        json.dumps(dict(zip(keys, row[:4], strict=True)) | {"helpful": row[4:], "summary": "é"})
        for row in expected.to_numpy(dtype=object).tolist()
    ]
    file = "reviews_Musical_Instruments_5.json.gz"
    raw("amazon-musical-instruments", file, gzip.compress("\n".join(lines).encode()))
    frame = datasets.ratings("amazon-musical-instruments")
    pd.testing.assert_frame_equal(frame, expected, check_dtype=False)
    lines[1] = lines[1][:30]
    raw("amazon-musical-instruments", file, gzip.compress("\n".join(lines).encode()))
    with pytest.raises(BookError, match=r"_5\.json\.gz, line 2: expected a JSON review"):
        datasets.ratings("amazon-musical-instruments")


@pytest.mark.parametrize(
    ("name", "line", "text"),
    [
        ("ml-1m", 2, "1::661"),
        ("ml-1m", 3, "2::1193::1::"),
        ("ml-1m", 1, "1::1193::5::978300760::9"),
        ("ml-1m", 1, "1::1193::5::978300760:"),
        ("ml-1m", 2, "1:661:3:978302109"),
        ("ml-1m", 2, "1::661::6::978302109"),
        ("ml-1m", 2, "1::661::nan::978302109"),
        ("ml-1m", 2, "-1::661::3::978302109"),
        ("ml-1m", 2, "1::661::3::99999999999999999999"),
        ("ml-20m", 2, "1,2,3.5"),
        ("ml-20m", 3, "1,,0.5,1112484676"),
        ("ml-20m", 4, "7,2,five,11"),
        ("ml-20m", 2, "userId,movieId,rating,timestamp"),
        ("yelp-zip", 2, "5045\t0\t1.0\t0\t2014-09-08"),
        ("yelp-zip", 3, "5045\t3\t4.0\t1\t2013-02-30"),
        ("yelp-zip", 3, "5045\t3\t4.0\t1"),
        ("yelp-chi", 1, "201 0 5.0 1 2011-06-08 late"),
        ("amazon-musical-instruments", 2, "A14VAT5EAX3D9S,1384719342,5.0,1363392000,13"),
        ("amazon-musical-instruments", 2, ",1384719342,5.0,1363392000,13,14"),
        ("hetrec2011-lastfm-2k", 3, "2\t52\t15\t1\t4"),
        ("hetrec2011-movielens-2k", 4, "127\t1343\tearth\t28\t8\t2007\t3\t42\t27"),
    ],
)
def test_a_bad_line_is_named_with_its_file(raw, name, line, text):
    file, sample, _ = SAMPLES[name]
    lines = sample.splitlines()
    lines[line - 1] = text
    raw(name, file, "\n".join(lines) + "\n")
    with pytest.raises(BookError) as caught:
        load(name)
    message = str(caught.value)
    assert message.startswith(f"{name}/{file}, line {line}: expected user")
    assert message.endswith(f"found '{text[:60]}'")


ROW = st.tuples(
    st.integers(1, 9999), st.integers(1, 9999), st.integers(1, 5), st.integers(10**8, 10**9)
)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=8), data=st.data())
def test_cutting_any_line_inside_is_noticed(tmp_path_factory, rows, data):
    lines = ["::".join(map(str, row)) for row in rows]
    bad = data.draw(st.integers(0, len(lines) - 1))
    cut = data.draw(st.integers(1, lines[bad].rindex("::") + 2))
    lines[bad] = lines[bad][:cut]
    path = tmp_path_factory.mktemp("ml-1m") / "ratings.dat"
    path.write_text("\n".join(lines))
    with pytest.raises(BookError, match=rf"ratings\.dat, line {bad + 1}: "):
        formats.read("movielens-dat", path)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=20), blank=st.booleans())
def test_what_is_written_is_read(tmp_path_factory, rows, blank):
    path = tmp_path_factory.mktemp("ml-1m") / "ratings.dat"
    path.write_text("".join("::".join(map(str, row)) + "\n" for row in rows) + "\n" * blank)
    assert list(formats.read("movielens-dat", path).itertuples(index=False, name=None)) == rows


@pytest.mark.parametrize("name", SAMPLES)
def test_empty_file(raw, name):
    file, text, _ = SAMPLES[name]
    raw(name, file, "")
    with pytest.raises(BookError, match="has no rows: expected lines of user"):
        load(name)
    if formats.LAYOUTS[datasets.registry()[name]["format"]][0].header:
        raw(name, file, text.splitlines()[0] + "\n")
        with pytest.raises(BookError, match="has no rows"):
            load(name)


def test_missing_header(raw):
    raw("ml-20m", "ratings.csv", "1,2,3.5,1112486027\n")
    with pytest.raises(
        BookError, match=r"ml-20m/ratings\.csv, line 1: expected the header 'userId"
    ):
        datasets.ratings("ml-20m")


def test_damaged_gzip(raw):
    rows = "".join(f"{user}::{user % 97 + 1}::4::{9 * user}\n" for user in range(1, 5000))
    whole = gzip.compress(rows.encode())
    for damaged in (whole[: len(whole) // 2], whole[:-6], rows.encode(), b""):
        raw("ml-1m", "ratings.dat.gz", damaged)
        with pytest.raises(BookError, match=r"ml-1m/ratings\.dat\.gz (is damaged|has no rows)"):
            datasets.ratings("ml-1m")
        assert datasets.digest("ml-1m") is not None
    raw("ml-1m", "ratings.dat.gz", whole)
    assert len(datasets.ratings("ml-1m")) == 4999


def test_search_order(raw, tmp_path, monkeypatch):
    sample = SAMPLES["yelp-zip"][:2]
    assert datasets.find("yelp-zip") is None
    put(tmp_path / "shared" / "datasets", "yelp-rayana/YelpZip", *sample)
    assert datasets.find("yelp-zip").where == "shared"
    put(tmp_path / "elsewhere", "yelp-zip", *sample)
    assert datasets.find("yelp-zip").where == "shared"
    monkeypatch.setenv("REGRETBOOK_DATA", str(tmp_path / "elsewhere"))
    assert datasets.find("yelp-zip") == (tmp_path / "elsewhere" / "yelp-zip", "environment")
    (paths.project().data / "raw" / "yelp-zip").mkdir(parents=True)
    assert datasets.find("yelp-zip").where == "environment", "an empty folder is not a dataset"
    raw("yelp-zip", *sample)
    assert datasets.find("yelp-zip").where == "raw"


def test_embedded_comes_first(raw):
    raw("ml-latest-small", "ratings.csv", SAMPLES["ml-20m"][1])
    assert datasets.find("ml-latest-small").where == "raw"
    put(paths.project().data, "ml-latest-small", "ratings.csv", "user,item,rating\n1,31,2.5\n")
    assert datasets.find("ml-latest-small").where == "embedded"
    assert datasets.ratings("ml-latest-small").to_dict("list") == {
        "user": [1],
        "item": [31],
        "rating": [2.5],
    }


def test_absent_dataset_says_where_and_how(raw, tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(BookError) as caught:
        datasets.ratings("ml-1m")
    message = str(caught.value)
    for part in ("data/raw/ml-1m", "$REGRETBOOK_DATA/ml-1m", "`regretbook data fetch ml-1m`"):
        assert part in message
    assert str(tmp_path) not in message
    with pytest.raises(BookError, match="Ask its owners"):
        datasets.ratings("yelp-nyc")
    with pytest.raises(BookError, match="there is no dataset 'ml1m'; did you mean ml-1m"):
        datasets.ratings("ml1m")


def test_ratings_and_tags_are_not_confused():
    with pytest.raises(BookError, match=r"datasets\.tags\("):
        datasets.ratings("hetrec2011-lastfm-2k")
    with pytest.raises(BookError, match=r"datasets\.ratings\("):
        datasets.tags("ml-1m")


def test_reading_is_journalled(raw, tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("REGRETBOOK_RUN", str(tmp_path / "run"))
    with pytest.raises(BookError):
        datasets.ratings("ml-1m")
    raw("ml-1m", *SAMPLES["ml-1m"][:2])
    datasets.ratings("ml-1m")
    assert journal.read(tmp_path / "run") == [
        journal.Data("ml-1m", None, "absent"),
        journal.Data("ml-1m", datasets.digest("ml-1m"), "raw"),
    ]


def test_digest_is_that_of_the_sha256sum_listing(raw):
    name = "hetrec2011-lastfm-2k"
    path = raw(name, *SAMPLES[name][:2])
    listing = "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
        for file in (path, path.with_name("tags.dat"))
    )
    before = datasets.digest(name)
    assert before == hashlib.sha256(listing.encode()).hexdigest()
    path.write_bytes(path.read_bytes() + b"4\t53\t13\t1\t4\t2009\r\n")
    assert datasets.digest(name) != before


def register(monkeypatch, name: str, **changes) -> None:
    monkeypatch.setitem(datasets.registered(), name, datasets.registry()[name] | changes)


def test_check_and_status(raw, monkeypatch):
    file, text, _ = SAMPLES["ml-1m"]
    raw("ml-1m", file, text)
    register(monkeypatch, "ml-1m", files={file: "0" * 64})
    problems = datasets.check("ml-1m")
    assert len(problems) == 4
    assert "SHA-256" in problems[0]
    assert problems[1] == "ratings.dat has 3 rows, the registry says 1,000,209"
    row = {row.name: row for row in datasets.status()}
    assert row["ml-1m"].where == "raw"
    assert row["ml-1m"].intact is False
    assert row["ml-20m"][2] == "absent"
    assert row["ml-20m"].digest is None
    assert row["ml-20m"].intact is None
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    counts = {"rows": 3, "users": 2, "items": 2}
    register(monkeypatch, "ml-1m", files={file: sha256}, counts=counts)
    assert datasets.check("ml-1m") == []
    assert next(row for row in datasets.status() if row.name == "ml-1m").intact is True


@pytest.mark.parametrize(
    "text", [SAMPLES["ml-1m"][1].replace("::3::", "::5::"), "1::2::3::4\n"], ids=["5", "other"]
)
def test_an_altered_dataset_is_refused_by_name(raw, monkeypatch, tmp_path, text):
    """All ratings set to 5, or another set in its place, would be judged as the registered one."""
    file, original, _ = SAMPLES["ml-1m"]
    register(monkeypatch, "ml-1m", files={file: hashlib.sha256(original.encode()).hexdigest()})
    raw("ml-1m", file, original)
    assert len(datasets.ratings("ml-1m")) == 3
    raw("ml-1m", file, text)
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("REGRETBOOK_RUN", str(tmp_path / "run"))
    with pytest.raises(BookError, match=r"is not the registered one: ratings\.dat has SHA-256"):
        datasets.ratings("ml-1m")
    assert datasets.find("ml-1m") is None
    assert "is not the registered one" in datasets.why_absent("ml-1m")
    assert set(journal.read(tmp_path / "run")) == {journal.Data("ml-1m", None, "altered")}


@pytest.fixture
def owner(tmp_path, monkeypatch):
    """The owner's web server on this machine: its folder, address and list of requests."""
    folder, requests = tmp_path / "owner", []
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            requests.append(self.path)

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with http.server.HTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()


def test_fetch_downloads_checks_and_unpacks_once(raw, owner, monkeypatch):
    folder, address, requests = owner
    text = SAMPLES["ml-1m"][1]
    with zipfile.ZipFile(folder / "ml-1m.zip", "w") as archive:
        archive.writestr("ml-1m/README", "terms")
        archive.writestr("ml-1m/ratings.dat", text)
        archive.writestr("../ratings.dat.txt", "outside")
    download = {
        "url": f"{address}/ml-1m.zip",
        "sha256": hashlib.sha256((folder / "ml-1m.zip").read_bytes()).hexdigest(),
    }
    files = {"ratings.dat": hashlib.sha256(text.encode()).hexdigest()}
    counts = {"rows": 3, "users": 2, "items": 2}
    register(monkeypatch, "ml-1m", files=files, counts=counts, download=download)
    assert datasets.fetch("ml-1m") == (paths.project().data / "raw" / "ml-1m", "raw")
    assert len(datasets.ratings("ml-1m")) == 3
    assert [path.name for path in (paths.project().data / "raw").rglob("*")] == [
        "ml-1m",
        "ratings.dat",
    ]
    datasets.fetch("ml-1m")
    assert len(requests) == 1
    raw("ml-1m", "ratings.dat", text[:20])
    datasets.fetch("ml-1m")
    assert len(datasets.ratings("ml-1m")) == 3, "a damaged copy is fetched again"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"sha256": "0" * 64}, "could not be downloaded from .*hash"),
        ({"url": "/gone.zip"}, "could not be downloaded from .*404"),
        ({"url": "/text.zip"}, "could not be downloaded from .*not a zip"),
        ({"url": "/other.zip"}, r"does not hold ratings\.dat"),
        ({}, r"is not the registered dataset: ratings\.dat has SHA-256"),
    ],
)
def test_a_failed_fetch_leaves_nothing_behind(raw, owner, monkeypatch, fault, message):
    folder, address, _ = owner
    for archive, member in (("ml-1m.zip", "ratings.dat"), ("other.zip", "movies.dat")):
        with zipfile.ZipFile(folder / archive, "w") as file:
            file.writestr(member, SAMPLES["ml-1m"][1])
    (folder / "text.zip").write_text("not an archive")
    download = {"url": "/ml-1m.zip", "sha256": None} | fault
    download |= {"url": address + download["url"]}
    register(monkeypatch, "ml-1m", download=download, files={"ratings.dat": "0" * 64})
    with pytest.raises(BookError, match=message) as caught:
        datasets.fetch("ml-1m")
    assert "\n" not in str(caught.value)
    assert list((paths.project().data / "raw").iterdir()) == []


def test_fetch_says_how_to_get_what_has_no_link(raw):
    with pytest.raises(BookError, match="yelp-chi cannot be downloaded: Ask its owners"):
        datasets.fetch("yelp-chi")


def test_registry_is_complete():
    for name, entry in datasets.registry().items():
        assert list(entry["counts"]) == ["rows", "users", "items"], name
        assert entry["format"] in formats.LAYOUTS, name
        assert entry["redistribute"] or not entry.get("embedded"), name
        assert all(sha is None or len(sha) == 64 for sha in entry["files"].values()), name
        assert entry.get("download", {"url": "https:"})["url"].startswith("https:"), name
        for key in ("title", "owner", "homepage", "reference", "terms", "get"):
            assert entry[key], (name, key)


def test_cards_show_every_dataset_with_terms_and_reference():
    text = datasets.cards()
    for name, entry in datasets.registry().items():
        assert f"`{name}`" in text
        assert f"## {entry['title']}" in text
        assert entry["terms"] in text
        assert ",".join(entry["reference"]) in text


def test_embedded_ratings():
    assert datasets._locate("ml-latest-small").where == "embedded"
    assert datasets.check("ml-latest-small") == []
    header = (paths.project().data / "ml-latest-small" / "ratings.csv.gz").read_bytes()[:10]
    assert header[4:8] == bytes(4), (
        "no time stamp, so that the file can be made again byte for byte"
    )


def test_embedded_ratings_are_the_owners():
    owners = (
        paths.project().root.parent / "shared" / "datasets" / "ml-latest-small-2016" / "ratings.csv"
    )
    if not owners.exists():
        pytest.skip("the owner's ml-latest-small of 2016 is not on this machine")
    theirs = formats.read("movielens-csv", owners)
    assert "time" in theirs
    ours = datasets.ratings("ml-latest-small")
    pd.testing.assert_frame_equal(ours, theirs[["user", "item", "rating"]])


@pytest.mark.parametrize("name", [n for n in datasets.registry() if n != "ml-latest-small"])
def test_real_files(name):
    if datasets._locate(name) is None:
        pytest.skip(f"{name} is not on this machine")
    assert datasets.check(name) == []
