"""Build the site into build/site: `make docs`. A warning is an error, and so is a link that leads nowhere."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import unquote

import pages
from sphinx.cmd.build import main as sphinx

BUILD = pages.ROOT / "build"


def faults_of(site: Path) -> list[str]:
    """Links of the site to pages, files and headings that are not there, and what it would load from elsewhere."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}
    found = []
    for path, text in texts.items():
        for tag, link in pages.links_of(text):
            where = f"{path.relative_to(site)}: {link}"
            if link.startswith(("http://", "https://", "mailto:", "data:")):
                if tag != "a":
                    found.append(f"{where} is loaded from elsewhere")
                continue
            name, _, anchor = unquote(link).partition("#")
            target = (path.parent / name.partition("?")[0]).resolve() if name else path
            if not target.exists():
                found.append(f"{where} is not there")
            elif anchor and target in texts and f'id="{anchor}"' not in texts[target]:
                found.append(f"{where} has no such heading")
    return found


def main(place: Path = BUILD) -> int:
    """Write the pages, build them, and check what was built."""
    pages.stage(place / "site-pages")
    strict = ["-W", "--keep-going", "-E", "-q"]
    places = ["-c", str(Path(__file__).parent), "-d", str(place / "site-trees")]
    failed = sphinx([*strict, "-b", "html", *places, str(place / "site-pages"), str(place / "site")])
    faults = faults_of(place / "site")
    print(*faults, sep="\n", file=sys.stderr, end="\n" * bool(faults))
    return 1 if failed or faults else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
