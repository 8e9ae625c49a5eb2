"""`regretbook live` in a real browser, on a tiny book: run, watch, cancel, refuse, draw."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urljoin, urlsplit

import psutil
import pytest
from playwright.sync_api import expect

from ci import cli, contents, display, forms, jobs, parameters, quick
from lib.beside import LABEL
from lib.paths import CODE, project_at
from tests.sandbox import FILES, HEAD

PAGE = """# Linear bandits

```{code-cell} ipython3
:tags: [parameters]

T = 20  # rounds, in [1, 1000]
pause = 0.0  # seconds that a round takes, in [0, 10]
names = ["a", "b c"]  # words
fast = True  # skip the slow part
seed = 1  # root of every random number, in [0, inf)
```

```{code-cell} ipython3
import time

import pandas as pd

from lib import claims, figures, results
from lib.progress import Progress

claims.judge("lin-one", T / 1000)
```

```{code-cell} ipython3
fig, ax = figures.grid()
ax.plot(range(T), label="LinUCB")
figures.show(fig, "fig-lin-line", "A line.", "A line that rises.")
results.save("line", pd.DataFrame({"t": range(T)}), "A line");
```

```{code-cell} ipython3
with Progress("waiting", T) as progress:
    for _ in range(T):
        time.sleep(pause)
        progress.add(1)
```
"""
QUICK = '''import pandas as pd

LABELS = {"n": "size n"}


def quick(
    slope=2,  # slope, in [1, 5]
    bend=0.5,  # bend, in [0, 1]
):
    """How steep is a line?"""
    if slope == 5:
        raise ValueError("too steep")
    rows = [("LinUCB", trial, n, slope * n) for trial in range(2) for n in range(1, 9)]
    return pd.DataFrame(rows, columns=["policy", "trial", "n", "regret"])
'''


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Build the tiny book for real, once."""
    root = tmp_path_factory.mktemp("live")
    files = {
        **FILES,
        "book/foundations/linear-bandits.md": HEAD + PAGE,
        "book/foundations/clustering-of-bandits/live.py": QUICK,
        "book/profiles.yml": "smoke:\n  linear-bandits: {T: 10}\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    for name in ("_config.yml", "book/references.bib", "book/_static"):
        copy = shutil.copytree if (CODE / name).is_dir() else shutil.copy
        copy(CODE / name, root / name)
    done = subprocess.run([*COMMAND, "build"], env=environment(root), **PIPES)
    assert done.returncode == 0, done.stdout + done.stderr
    return project_at(root)


COMMAND = [sys.executable, "-m", "ci"]
PIPES = {"cwd": CODE, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def environment(root):
    return {**os.environ, "REGRETBOOK_ROOT": str(root), "PYTHONPATH": str(CODE)}


@contextlib.contextmanager
def serving(book):
    """Start a server; give its process and address, and let nothing of it stay."""
    with subprocess.Popen([*COMMAND, "live"], env=environment(book.root), **PIPES) as server:
        try:
            yield server, server.stdout.readline().split()[0]
        finally:
            server.kill()


@pytest.fixture(scope="module")
def address(book):
    with serving(book) as (_, address):
        yield address


@pytest.fixture
def tab(browser, address):
    """Return a function that opens a page of the book in a new tab."""
    context = browser.new_context()
    troubles = []

    def go(name):
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(f"{address}{name}.html")
        return page

    yield go
    context.close()
    assert troubles == []


expect.set_options(timeout=60_000)  # a busy machine is no mistake
LINEAR, CLUSTERS = "foundations/linear-bandits", "foundations/clustering-of-bandits/index"


def fill(page, **values):
    """Open the form of a page and give some of its fields other values."""
    form = page.locator(".rb-live-form")
    if form.get_attribute("open") is None:
        form.locator("summary").click()
    for name, value in values.items():
        form.locator(f"[name={name}]").fill(value)
    return form


def request(address, path, method="GET", body=None, **headers):
    """Send a request as no browser would; return status and text."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        body, headers["Content-Type"] = json.dumps(body), "application/json"
    connection.request(method, parts.path + path, body, headers)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(errors="replace")
    connection.close()
    return found


def test_a_changed_value_is_run_watched_and_judged_beside_the_published_one(tab, book):
    page = tab(LINEAR)
    form = fill(page, T="60", pause="0.05")
    expect(form.locator(".rb-command")).to_have_text(
        "regretbook run linear-bandits -p T=60 -p pause=0.05"
    )
    form.get_by_role("button", name="Run").click()
    job = page.locator(".rb-job").first
    expect(job).to_have_attribute("data-state", "running")
    expect(job.locator(".rb-where")).to_contain_text("waiting")
    assert 0 < job.locator("progress").evaluate("bar => bar.value") <= 1
    row = job.locator("tr.rb-changed")
    expect(row).to_contain_text("not reproduced")  # while it runs
    expect(row).to_contain_text("0.06")
    expect(row).to_contain_text("0.02")
    expect(job.locator(".rb-job-figures svg")).to_contain_text(LABEL)
    expect(job).to_have_attribute("data-state", "done")
    report = job.frame_locator("iframe")
    expect(report.locator("#fig-lin-line svg")).to_contain_text(LABEL)
    expect(report.get_by_role("table").nth(1)).to_contain_text("not reproduced")
    link = job.get_by_role("link", name="report")
    expect(link).to_have_attribute("href", re.compile("report.html$"))
    table = job.get_by_role("link", name="line.csv").get_attribute("href")
    assert page.request.get(urljoin(page.url, table)).text().splitlines()[-1] == "59"
    own = [*(book.build / "live").glob("*/run/run.json")]
    assert json.loads(own[0].read_text())["parameters"]["T"] == 60
    assert not (book.build / "runs").exists()


def test_a_value_out_of_range_is_refused_beside_its_field(tab, book):
    page = tab(LINEAR)
    form = fill(page, T="0")
    sentence = "parameter T of linear-bandits is 0, but must be in [1, 1000]"
    expect(form.get_by_role("alert").filter(has_text="parameter T")).to_have_text(sentence)
    expect(form.locator("[name=T]")).to_have_attribute("aria-invalid", "true")
    before = page.locator(".rb-job").count()
    form.get_by_role("button", name="Run").click()
    fill(page, T="30")
    expect(form.get_by_role("alert").filter(has_text="parameter T")).to_have_count(0)
    assert page.locator(".rb-job").count() == before


def test_jobs_queue_and_are_cancelled_in_every_tab(tab):
    page, other = tab(LINEAR), tab(CLUSTERS)
    form = fill(page, T="1000", pause="10")
    form.get_by_role("button", name="Run").click()
    first = page.locator(".rb-job").first
    expect(first.locator(".rb-where")).to_contain_text("waiting 0%")
    expect(other.locator(".rb-others")).to_contain_text("linear-bandits (running")
    fill(other).get_by_role("button", name="Run").click()
    second = other.locator(".rb-job").first
    expect(second).to_have_attribute("data-state", "waiting")
    first.get_by_role("button", name="Cancel").click()
    expect(first).to_have_attribute("data-state", "cancelled")
    expect(first).to_contain_text("Finished trials are kept.")
    expect(second).to_have_attribute("data-state", "done")


def test_the_time_of_other_values_is_estimated(tab):
    page = tab(CLUSTERS)
    fill(page).get_by_role("button", name="Estimate").click()
    job = page.locator(".rb-job").filter(has_text="Estimate of")
    expect(job).to_contain_text("0 of 0 tasks")


def test_the_figure_follows_the_sliders(tab):
    page = tab(CLUSTERS)
    figure, slider = page.locator("#rb-quick"), page.locator("#rb-quick-slope")
    expect(page.locator(".rb-question")).to_contain_text("How steep is a line?")
    expect(figure).to_contain_text("LinUCB 16")
    expect(figure.locator("svg")).to_contain_text("size n")
    slider.fill("4")
    expect(figure).to_contain_text("LinUCB 32")
    slider.fill("5")
    expect(figure).to_contain_text("too steep")
    slider.fill("1")
    expect(figure).to_contain_text("LinUCB 8")


def test_the_published_page_builds_the_very_command_that_python_would(browser, book):
    page = browser.new_page()
    page.goto((book.build / f"html/{LINEAR}.html").as_uri())
    page.get_by_text("Rerun this page").click()
    form = page.locator(".rb-rerun form")
    form.get_by_label("smoke").check()
    assert form.locator("[name=T]").input_value() == "10"
    form.locator("[name=names]").fill("""["it's", 'b c']""")
    form.locator("[name=fast]").select_option("False")
    said = form.locator(".rb-command").text_content()
    page.close()
    declared = contents.discover(book)["linear-bandits"]
    wanted = {"names": ["it's", "b c"], "fast": False}
    values = parameters.resolve(book, declared, "smoke") | wanted
    for command in (said, parameters.command(book, declared, "smoke", values)):
        *head, _, first, _, second = shlex.split(command)
        assert head == ["regretbook", "run", "linear-bandits", "--profile", "smoke"]
        texts = parameters.parse_options([first, second])
        assert forms.checked(declared, texts) == (wanted, {})


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "book.example:80"}, 421),
        ({"Origin": "http://book.example"}, 403),
        ({"Origin": "null"}, 403),
        ({}, 403),  # whoever is no browser has no business to run things
    ],
)
def test_a_foreign_host_or_origin_is_refused(address, headers, status):
    body = {"page": "linear-bandits", "kind": "run", "profile": "book", "values": {}}
    assert request(address, "live/start", "POST", body, **headers)[0] == status


def test_only_files_of_the_book_and_of_runs_are_served(address):
    assert request(address, "index.html")[0] == 200
    assert request(address, "index.html", Origin="http://book.example")[0] == 403
    root = address[: address.rindex("/", 0, -1) + 1]
    assert request(root, "")[0] == 404
    assert request(root, "guess/index.html")[0] == 404
    for path in ("../_toc.yml", "..%2f..%2f_toc.yml", "/etc/passwd", "%2fetc%2fpasswd", "_static"):
        assert request(address, path)[0] == 404
    for path in ("live/file/nothing/run.json", "live/own/live.py", "live/own/..%2flive.py"):
        assert request(address, path)[0] in (400, 404)


def test_a_request_that_makes_no_sense_is_one_sentence(address):
    origin = {"Origin": "http://" + urlsplit(address).netloc}
    for body in ({}, [], {"page": "nothing", "values": {}}, {"page": "linear-bandits"}):
        status, text = request(address, "live/check", "POST", body, **origin)
        assert status == 400
        assert "error" in json.loads(text)


def test_it_ends_with_ctrl_c_and_leaves_no_process_behind(book):
    with serving(book) as (server, address):
        origin = {"Origin": "http://" + urlsplit(address).netloc}
        values = {"T": "1000", "pause": "10"}
        run = {"page": "linear-bandits", "kind": "run", "profile": "book", "values": values}
        assert request(address, "live/start", "POST", run, **origin)[0] == 200
        drawing = {"page": "clustering-of-bandits/index", "values": {"slope": "2"}}
        assert request(address, "live/quick", "POST", drawing, **origin)[0] == 200
        while not [*(book.build / "live").glob("*/.regretbook-work-*/journal.jsonl")]:
            assert server.poll() is None
            time.sleep(0.1)
        below = psutil.Process(server.pid).children(recursive=True)
        assert len(below) >= 3, "a run, its kernel, and the process that draws"
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=60)
    assert (server.returncode, said) == (0, "")
    assert psutil.wait_procs(below, timeout=30)[1] == []
    assert not [*(book.build / "live").glob("*/.regretbook-work-*")]


def test_a_run_that_fails_says_why_and_the_next_one_runs(sandbox):
    async def both():
        queue = jobs.Queue(sandbox.project)
        page = sandbox.pages["linear-bandits"]
        wrong, right = (queue.add(page, "plan", "book", {}) for _ in range(2))
        wrong.command, right.command = ["plan", "nothing"], ["list"]
        working = asyncio.create_task(queue.work())
        while not right.ended:
            await asyncio.sleep(0.1)
        working.cancel()
        return queue.shown()

    with ThreadPoolExecutor(1) as thread:  # the browser's own loop runs in this one
        right, wrong = thread.submit(asyncio.run, both()).result()
    assert (right["state"], wrong["state"]) == ("done", "failed")
    assert wrong["said"].startswith("regretbook: there is no page 'nothing'")


def test_the_position_of_a_run_is_read_as_it_is_written(tmp_path):
    position, path = jobs.Position(), tmp_path / "progress.jsonl"
    position.follow(path)
    assert position.shown() == {"progress": 0, "where": "starting"}
    display.Position("page", 4, path).move(2)
    position.follow(path)
    assert position.shown() == {"progress": 0.25, "where": "cell 2 of 4"}
    with path.open("a") as file:
        file.write('{"task": "first run", "done": 1, "total": 2}\n{"task": "fir')
    position.follow(path)
    assert position.shown() == {"progress": 0.375, "where": "cell 2 of 4, first run 50%"}


def test_without_a_built_book_one_sentence_says_what_to_do(sandbox, capsys):
    assert cli.main(["live"]) == 2
    assert capsys.readouterr().err == (
        "regretbook: there is no built book to serve yet; run `make book` first\n"
    )


def test_a_form_refuses_what_the_command_refuses(sandbox):
    page = sandbox.pages["linear-bandits"]
    texts = {"T": "0", "scale": "nan", "rule": "ts", "dims": "[5, 200]", "fast": "no", "x": "1"}
    values, errors = forms.checked(page, texts)
    assert values == {"rule": "ts"}
    for name in ("T", "scale", "dims"):
        with pytest.raises(parameters.BookError) as refused:
            parameters.check(page.parameters[name], texts[name], page.name)
        assert errors[name] == str(refused.value)
    assert set(errors) == {"T", "scale", "dims", "fast", "x"}


def test_sliders_have_about_twenty_positions_that_meet_both_ends(tmp_path):
    (tmp_path / "live.py").write_text(QUICK)
    slope, bend = (quick._slider(each) for each in quick.sliders(tmp_path / "live.py").values())
    assert (slope["low"], slope["high"], slope["step"]) == (1, 5, 1)
    assert (bend["low"], bend["high"], bend["step"], bend["value"]) == (0, 1, 0.05, 0.5)
