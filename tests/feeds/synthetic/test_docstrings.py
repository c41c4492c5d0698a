"""Text from Python sources: what is documentation, and that nothing runs."""

from __future__ import annotations

from collections import Counter

from hogwild.feeds.synthetic.docstrings import documentation

SOURCE = '''"""The first line says what. Then more is said!

And a new paragraph follows here.
"""
raise SystemExit("this must never run, and is no documentation")

NAME = "a short string is none"

class Thing:
    """Things have docstrings of their own."""

    async def act(self):
        \'\'\'Doesn't do much at all.\'\'\'
        def inner():
            """Even inside of others."""
'''


def write(place, name, source):
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    return path


def test_docstrings_become_sentences(tmp_path):
    write(tmp_path, "a.py", SOURCE)
    assert documentation(10**6, [tmp_path]) == [
        ["the", "first", "line", "says", "what"],
        ["then", "more", "is", "said"],
        ["and", "a", "new", "paragraph", "follows", "here"],
        ["things", "have", "docstrings", "of", "their", "own"],
        ["doesn't", "do", "much", "at", "all"],
        ["even", "inside", "of", "others"],
    ]


def test_what_cannot_be_read_and_what_is_no_documentation(tmp_path):
    write(tmp_path, "broken.py", "def (:\n")
    write(tmp_path, "nul.py", '"""Not a source."""\0')
    write(tmp_path, "tests/test_a.py", '"""Tests are left out here."""')
    write(tmp_path, "sub/b.py", 'import nothing_like_this\nx = {"k": "' + "a long text of help " * 200 + '"}\n')
    write(tmp_path, "sub/c.py", "'''The same text twice counts once.'''\n")
    write(tmp_path, "sub/d.py", "'''The same text twice counts once.'''\n")
    (long, once) = documentation(10**6, [tmp_path])
    assert Counter(long) == dict.fromkeys(["a", "long", "text", "of", "help"], 200)
    assert once == ["the", "same", "text", "twice", "counts", "once"]


def test_no_more_words_than_asked_for(tmp_path):
    for k in range(50):
        write(tmp_path, f"m{k:02}.py", f'"""Module number {"i" * (k + 1)} of many."""')
    found = documentation(40, [tmp_path])
    assert sum(map(len, found)) == 40
    assert documentation(0, [tmp_path / "nowhere"]) == []


def test_this_python_has_documentation():
    found = documentation(5000)
    assert 5000 <= sum(map(len, found)) < 15_000
    counts = Counter(word for sentence in found for word in sentence)
    assert counts.most_common(1)[0][0] == "the"
