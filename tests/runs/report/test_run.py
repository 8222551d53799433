"""The report without a browser: what goes in, how it is written, what is said."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import some_findings
from helpers.markup import Balance, words
from helpers.some_findings import IMG, bare, invented, small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotmix._common.words import shorten
from annotmix.runs import confusion_matrices
from annotmix.runs.confusion_matrices import ConfusionMatrices
from annotmix.runs.evaluate import score
from annotmix.runs.findings import Preview
from annotmix.runs.report import page as page_module
from annotmix.runs.report import payload as payload_module
from annotmix.runs.report.formatting import share
from annotmix.runs.report.opening import opening
from annotmix.runs.report.page import embedded_data, embedded_json
from annotmix.runs.report.payload import UNKNOWN, matrices, shown_tables
from annotmix.runs.report.run import run_page, write_report
from annotmix.runs.result_columns import TABLES, Column, make_table


def payload(found):
    return payload_module.payload(found, shown_tables(found))


def decoded(text, dtype=np.uint8):
    return np.frombuffer(base64.b64decode(text), dtype)


def embedded(html):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html).group(1))


@settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_embedded_json_keeps_everything_and_cannot_be_left(data):
    text = embedded_json(data)
    assert json.loads(text) == data
    assert not set(text) & set("<>&\u2028\u2029")


def test_rows_refer_to_their_names():
    found = small()
    data = payload(found)
    labels = pd.DataFrame(data["tables"]["labels"]["values"])
    for column, names in (
        ("item", "items"),
        ("annotator", "annotators"),
        ("label", "classes"),
        ("consensus", "classes"),
    ):
        assert [data[names][i] for i in labels[column]] == list(found.labels[column])
    np.testing.assert_allclose(labels["probability"], found.labels["probability"], atol=5e-5)
    disputed = data["tables"]["disputed"]["values"]
    assert [data["items"][i] for i in disputed["item"]] == list(
        found.items.query("disagreement > 0").sort_values("probability", kind="stable").index
    )
    asked = data["tables"]["suggestions"]["values"]
    assert [data["annotators"][i] for i in asked["annotator"]] == list(found.suggestions["annotator"])
    assert data["texts"] == [shorten(found.previews[item].text, 500) for item in data["items"]]


def test_a_small_chance_is_not_none():
    found = small()
    found.labels.loc[0, "probability"] = 3.52e-5
    assert payload(found)["tables"]["labels"]["values"]["probability"][0] == 3.52e-5


def test_matrices_are_kept_to_half_a_percent():
    rng = np.random.default_rng(0)
    confusion = rng.dirichlet(np.ones(5), size=(7, 5))
    confusion[3] = np.nan
    steps = decoded(matrices(ConfusionMatrices.of(confusion))["full"]).reshape(7, 5, 5)
    assert (steps[3] == UNKNOWN).all()
    known = np.delete(np.arange(7), 3)
    np.testing.assert_allclose(steps[known] / 254, confusion[known], atol=0.5 / 254 + 1e-9)


def test_of_many_classes_the_largest_confusions_are_kept(monkeypatch):
    monkeypatch.setattr(confusion_matrices, "MOST", 100)
    confusion = np.random.default_rng(0).dirichlet(np.ones(12), size=(3, 12))
    parts = matrices(ConfusionMatrices.of(confusion))
    assert "full" not in parts
    np.testing.assert_allclose(
        decoded(parts["diagonal"]).reshape(3, 12) / 254, [np.diag(m) for m in confusion], atol=0.01
    )
    cell, share = decoded(parts["cell"], "<u4").reshape(3, -1), decoded(parts["share"]).reshape(3, -1)
    for m, matrix in enumerate(confusion):
        others = sorted((matrix[c, k] for c in range(12) for k in range(12) if c != k), reverse=True)
        assert len(set(cell[m])) == confusion_matrices.LARGEST
        np.testing.assert_allclose(sorted(share[m] / 254, reverse=True), others[: len(share[m])], atol=0.01)
        np.testing.assert_allclose(matrix.flat[cell[m]], share[m] / 254, atol=0.01)


def test_only_the_least_trusted_labels_go_in(monkeypatch):
    monkeypatch.setitem(payload_module.MOST, "labels", 50)
    found = small()
    html = run_page(found)
    assert len(embedded(html)["tables"]["labels"]["values"]["item"]) == 50
    assert f"The 50 least trusted of {len(found.labels)} are here, all in labels.csv" in words(html)


def test_annotators_that_do_not_fit_are_named_but_have_no_row(monkeypatch):
    monkeypatch.setitem(payload_module.MOST, "annotators", 10)
    found = small()
    html = run_page(found)
    data = embedded(html)
    shown = data["annotators"][:10]
    assert set(shown) == set(
        found.annotators["n_labels"].sort_values(ascending=False, kind="stable").index[:10]
    )
    assert [data["annotators"][i] for i in data["tables"]["labels"]["values"]["annotator"]] == list(
        found.labels["annotator"]
    )
    assert decoded(data["matrices"]["full"]).shape == (10 * 4 * 4,)
    assert "20 more are in annotators.csv" in words(html)


def test_thumbnails_stop_where_the_room_ends(monkeypatch):
    monkeypatch.setattr(payload_module, "IMAGE_BYTES", 250)
    found = small()
    data = payload(replace(found, previews={item: Preview("", b"x" * 100) for item in found.items.index}))
    first, second = dict.fromkeys(found.labels["item"].head(2))
    assert {data["items"][place] for place in data["images"]} == {first, second}


def test_the_first_screen_counts_right():
    found = small()
    text = words(run_page(found))
    wrong = (found.labels["probability"] < 0.5).sum()
    assert f"{wrong} of {len(found.labels)} labels are probably wrong" in text
    assert f"{wrong} of {len(found.labels)} are more likely wrong than right" in text
    assert f"30 annotators gave {len(found.labels)} labels of 4 classes to 181 items, 2.6 per item." in text
    assert "19 more items have no labels." in text
    labelled = found.items[found.items["n_labels"] > 0]
    sure, differs = (labelled["probability"] >= 0.95).sum(), found.items["differs"].sum()
    assert f"For {sure} of {len(labelled)} labelled items the label is 95% sure or more" in text
    assert f"{differs} got another label than the one with the most votes" in text
    mean = np.average(found.confusion.whole, axis=0, weights=found.annotators["n_labels"])
    np.fill_diagonal(mean, 0)
    true, said = np.unravel_index(mean.argmax(), mean.shape)
    assert f"Most often class {true} is called class {said} ({mean.max():.0%})" in text
    first = found.suggestions.iloc[0]
    assert f"First ask annotator {first['annotator']} about item {first['item']}" in text
    assert "Such scores describe labels, not people." in text
    assert "Checked against known labels" not in text


def test_with_many_classes_the_first_screen_counts_the_most_frequent_wrong_label(monkeypatch):
    monkeypatch.setattr(confusion_matrices, "MOST", 10)
    found = small()
    assert found.confusion.whole is None
    count = Counter(zip(found.labels["consensus"], found.labels["label"], strict=True))
    wrong = {pair: n for pair, n in count.items() if pair[0] != pair[1]}
    true, said = max(wrong, key=wrong.get)  # the first of several
    share = wrong[true, said] / sum(n for pair, n in count.items() if pair[0] == true)
    assert f"Most often {true} is called {said} ({share:.0%})" in words(run_page(found))


def test_scores_and_calibration_are_shown_where_labels_are_known():
    bins = pd.DataFrame({"confidence": [0.6, 0.9], "accuracy": [0.5, 0.7], "count": [10, 30]})
    scores = {"n": 40, "consensus-acc": 0.65, "majority-acc": 0.6, "my-score": 0.5, "label-auroc": np.nan}
    text = words(run_page(replace(small(), scores=scores, calibration=bins)))
    assert "On 40 items with known labels, this run is right for 65.0%, the majority vote for 60.0%." in text
    assert "off by 17.5 points on average, too sure" in text
    assert "my-score0.5" in text
    assert re.search(r"\(label-auroc, 0.5 is guessing\)–", text)


def test_agreement_is_explained():
    found = some_findings.invented(200, 30, 14, 500)
    figures = found.agreement
    text = words(run_page(found))
    for part in (
        f"are the same in {share(figures.percent)} of cases, counted on {figures.n_items} items",
        f"Here α is {figures.alpha:.3f}, with a 95% interval from {figures.low:.3f} to {figures.high:.3f}.",
        f"κ is {figures.fleiss_kappa:.3f}.",
        "labels are reliable from .800 on",
        "4 more classes",
    ):
        assert part in text
    first = figures.classes.iloc[0]
    assert f"{figures.classes.index[0]}{first['alpha']:.3f} ({first['low']:.3f} to" in text


def test_agreement_that_nobody_knows():
    found = small()
    assert "How far annotators agree" not in words(run_page(replace(found, agreement=None)))
    nothing = replace(found.agreement, n_items=0, alpha=np.nan)
    assert "so nobody knows how far they agree" in words(run_page(replace(found, agreement=nothing)))
    alike = replace(found.agreement, alpha=np.nan)
    assert "have labels of one class" in words(run_page(replace(found, agreement=alike)))


def test_real_accuracy_of_annotators_is_shown_where_labels_are_known():
    truth = dict(zip(small().items.index, small().items["label"], strict=True))
    found = score(small(), truth)
    right = (
        (found.labels["label"] == found.labels["item"].map(truth)).groupby(found.labels["annotator"]).mean()
    )
    np.testing.assert_allclose(found.annotators["real_accuracy"], right.reindex(found.annotators.index))
    html = run_page(found)
    heads = [column["title"] for column in embedded(html)["tables"]["annotators"]["columns"]]
    assert "Real accuracy" in heads
    gap = found.annotators["accuracy"] - found.annotators["real_accuracy"]
    inside = found.annotators["real_accuracy"].between(found.annotators["low"], found.annotators["high"])
    assert f"{100 * gap.abs().mean():.0f} points away from it on average" in words(html)
    assert f"holds the real accuracy of {inside.sum()} of {right.size} annotators" in words(html)
    without = [column["title"] for column in payload(small())["tables"]["annotators"]["columns"]]
    assert "Real accuracy" not in without


def test_a_declared_column_reaches_the_page_and_an_undeclared_one_is_refused(monkeypatch):
    new = Column("seconds", "number", "mean time of a label", "Seconds")
    with pytest.raises(KeyError, match="seconds"):
        make_table("annotators", small().annotators.assign(seconds=1.5).reset_index())
    monkeypatch.setitem(TABLES, "annotators", (*TABLES["annotators"], new))
    found = small()
    table = make_table("annotators", found.annotators.assign(seconds=1.5).reset_index())
    html = run_page(replace(found, annotators=table))
    assert "mean time of a label" in html
    assert embedded(html)["tables"]["annotators"]["values"]["seconds"] == [1.5] * 30
    assert '<th scope="col">Seconds</th>' in html


def test_little_is_enough_for_a_report():
    html = run_page(bare())
    text = words(html)
    Balance(html)
    assert "nan" not in text.lower().replace("annotator", "")
    for sentence in ("There are no labels", "no opinion about annotators", "There are no suggestions"):
        assert sentence in text
    assert "Learning curves" not in text


def test_hostile_names_stay_text():
    html = run_page(some_findings.invented(60, 20, 8, 200, some_findings.HOSTILE))
    found = Balance(html)
    assert "img" not in found.tags
    assert found.tags.count("script") == 2
    assert not [name for name, _ in found.attributes if name.startswith("on") or name in ("src", "style")]
    assert all(link.startswith("#") for name, link in found.attributes if name == "href")
    assert len(html) < 300_000  # names of 10 kB are cut


def test_the_policy_names_what_is_in_the_page():
    html = run_page(small())
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html).group(1)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert policy.count("sha256-") == 2


def test_long_data_are_compressed_and_the_same(monkeypatch):
    data = {"names": [IMG, "</script>", "half a pair: \ud83d"]}
    plain = embedded_data(data)
    assert 'type="application/json"' in plain
    monkeypatch.setattr(page_module, "PLAIN", 10)
    packed = re.fullmatch(
        r'<script type="application/gzip" id="data">([\w+/=]+)</script>', embedded_data(data)
    ).group(1)
    unpacked = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert unpacked == {"names": [IMG, "</script>", "half a pair: ?"]}
    assert embedded_data(data) == embedded_data(data)  # no time in it


def test_every_item_is_in_the_page_with_all_its_labels():
    found = small()
    data = payload(found)
    votes, names = data["votes"], data["items"]
    assert names == list(found.items.index)
    assert len(votes["annotator"]) == len(found.labels)
    labels = found.labels.set_index("item")
    for place, item in enumerate(names):
        own = range(votes["start"][place], votes["start"][place + 1])
        shown = [(data["annotators"][votes["annotator"][v]], data["classes"][votes["label"][v]]) for v in own]
        given = labels.loc[[item]] if item in labels.index else labels.iloc[:0]
        assert sorted(shown) == sorted(zip(given["annotator"], given["label"], strict=True))
        chances = [votes["probability"][v] for v in own]
        assert chances == sorted(chances, reverse=True)


@pytest.mark.parametrize("limit", ["items", "votes"])
def test_where_items_are_too_many_the_least_sure_are_in_the_page(monkeypatch, limit):
    if limit == "items":
        monkeypatch.setitem(payload_module.MOST, "items", 50)
    else:
        monkeypatch.setattr(payload_module, "MOST_VOTES", 130)
    found = small()
    html = run_page(found)
    n = embedded(html)["tables"]["items"]["n"]
    assert n == 50 or limit == "votes"
    least = found.items.sort_values("probability", kind="stable").head(n)
    assert embedded(html)["items"][:n] == list(least.index)
    assert least["n_labels"].sum() <= 130 or limit == "items"
    assert f"The {n} least sure of 200 items; items.csv has all of them" in words(html)


def test_the_command_is_not_cut():
    command = "annotmix fit " + "x" * 2000
    text = words(run_page(replace(small(), settings={"command": command, "interval": "y" * 300})))
    assert command in text
    assert "y" * 300 in text


def test_a_tie_is_no_majority():
    found = small()
    tied = found.items[found.items["majority"].str.contains(" = ")]
    assert len(tied) > 10
    for item, row in found.items.iterrows():
        votes = found.labels[found.labels["item"] == item]["label"].value_counts()
        most = sorted(votes.index[votes == votes.max()]) if len(votes) else []
        assert row["majority"] == " = ".join(most)
        assert row["differs"] == bool(most and row["label"] not in most)


def test_the_file_is_replaced_in_one_step(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write_report(replace(small(), notes=["half a pair: \ud83d"]), path)
    before = path.read_bytes()
    assert "half a pair: ?" in before.decode("utf-8")
    monkeypatch.setattr("pathlib.Path.write_bytes", lambda *_: (_ for _ in ()).throw(OSError(28, "No space")))
    with pytest.raises(OSError, match="No space"):
        write_report(small(), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_thumbnails_that_were_left_out_are_counted():
    found = small()
    items = list(dict.fromkeys(found.labels["item"]))
    listed = len(payload(found)["items"])
    assert "thumbnail" not in words(run_page(found))
    some = replace(found, previews={item: Preview(item, b"jpeg") for item in items[:30]})
    assert f"30 of its {listed} items have a picture here" in words(run_page(some))
    assert f"{listed - 30} were left out" in words(run_page(some))


def test_the_first_screen_warns_where_the_classifier_has_hardly_learnt():
    found = invented(20, 4, 3, 60)
    unsure = replace(found, items=found.items.assign(probability=0.4))
    assert "only 40% sure on average" in opening(unsure)
    assert "sure on average" not in opening(found)


def test_nothing_at_all_is_not_said_to_be_a_little():
    assert [share(value) for value in (0.0, 1e-5, 0.5, 0.99999, 1.0)] == [
        "0.0%",
        "below 0.1%",
        "50.0%",
        "over 99.9%",
        "100.0%",
    ]


def test_no_share_is_rounded_to_certainty():
    from annotmix.runs.report.payload import _numbers

    values = pd.Series([0.99999999, 1.0, 0.123456, 1e-9, 1234.56, np.nan, -0.5])
    assert _numbers(values) == [0.9999, 1, 0.1235, 1e-9, 1235.0, None, -0.5]
