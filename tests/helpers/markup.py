"""A parser that fails where tags are not balanced."""

import re
from html.parser import HTMLParser

VOID = {"meta"}


class Balance(HTMLParser):
    """Collects the tags and fails where one is closed that was not opened last."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def words(html):
    """The text of a page, without style and script."""
    bare = re.sub(r"<(style|script).*?</\1>", "", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", bare))
