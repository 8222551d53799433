"""The checks of `helpers.approach_checks` over the registry: an approach that is added is tested at once."""

import inspect
import re

import pytest
from helpers.approach_checks import CHECKS, arguments, easy, make
from torch import nn

import annotmix
from annotmix.approaches import Approach

PAPER = [
    "true-base",
    "mv-base",
    "mv-mixup",
    "ds-mixup",
    "crowd-layer",
    "trace-reg",
    "conal",
    "union-net",
    "madl",
    "geo-reg-f",
    "geo-reg-w",
    "crowd-ar",
    "annot-mix",
]


@pytest.mark.parametrize(
    ("check", "name"),
    [(check, name) for check, applies in CHECKS for name in annotmix.list_approaches() if applies(name)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_registered(check, name, tmp_path):
    check(**arguments(check, name, tmp_path))


def test_the_paper_s_approaches_are_all_there():
    assert set(PAPER) <= set(annotmix.list_approaches())


def test_true_base_refuses_the_labels_of_several_annotators():
    X, Z, _ = easy(50)
    with pytest.raises(ValueError, match="mv-base"):
        make("true-base").fit(X, Z)


def test_the_base_class_has_few_members_each_explained():
    own = {name: value for name, value in vars(Approach).items() if not name.startswith("_")}
    members = ({*own} | {*inspect.get_annotations(Approach)}) - {*dir(nn.Module)}
    assert len(members) <= 15, members
    source = inspect.getsource(Approach)
    for name in members:
        described = inspect.getdoc(own[name]) if callable(getattr(Approach, name, None)) else ""
        assert described or re.search(rf"#: .+\n    {name}: ", source), name
