"""Gather the pages of the site: `python -m scripts.site`, then `mkdocs build` (`make docs` does both).

README.md becomes the first page; links between pages are kept, links to other files of the repository
become plain text, since the site does not have them. A link to nothing is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "build/pages"
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
}
STATIC = (".css", ".json", ".png", ".yml", "")
UNSEARCHED = "CHANGELOG.md"
"""It names everything, and would be among the answers to every search."""
FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def sources() -> dict[str, Path]:
    """Each page and file of the site by its path there."""
    found = {to: ROOT / name for name, to in OUTSIDE.items()}
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.is_file() and path.suffix in (".md", *STATIC):
            found[path.relative_to(ROOT / "docs").as_posix()] = path
    return found


def gathered() -> tuple[dict[str, str], list[str]]:
    """The text of each page with its links as the site needs them, and links to nothing."""
    found = sources()
    places = {path.resolve(): to for to, path in found.items()}
    broken: list[str] = []

    def page(to: str, source: Path) -> str:
        def link(match: re.Match[str]) -> str:
            mark, text, address = match.groups()
            if re.match(r"[a-z]+:|#", address):
                return match[0]
            path, hash_, anchor = address.partition("#")
            target = (source.parent / path).resolve()
            if target in places:
                relative = os.path.relpath(places[target], Path(to).parent)
                return f"{mark}[{text}]({Path(relative).as_posix()}{hash_}{anchor})"
            if not target.exists():
                broken.append(f"{source.relative_to(ROOT)}: {address}")
            return text

        text, at, parts = source.read_text(), 0, []
        for fence in FENCE.finditer(text):  # code is not searched for links
            parts += [LINK.sub(link, text[at : fence.start()]), fence[0]]
            at = fence.end()
        return "".join([*parts, LINK.sub(link, text[at:])])

    pages = {to: page(to, path) for to, path in found.items() if path.suffix == ".md"}
    pages[UNSEARCHED] = f"---\nsearch:\n  exclude: true\n---\n\n{pages[UNSEARCHED]}"
    return pages, broken


def configuration(pages: set[str]) -> str:
    """The site's settings, with the pages that they do not name at the end."""
    text = (ROOT / "mkdocs.yml").read_text()
    rest = sorted(pages - set(re.findall(r"(\S+\.md)$", text, re.MULTILINE)))
    if rest:
        text += "  - More:\n" + "".join(f"      - {name}\n" for name in rest)
    return text.replace("docs_dir: build/pages", "docs_dir: pages").replace(
        "site_dir: build/", "site_dir: "
    )


def main() -> int:
    pages, broken = gathered()
    if broken:
        print(*broken, "error: these links lead to nothing", sep="\n", file=sys.stderr)
        return 1
    shutil.rmtree(PAGES, ignore_errors=True)
    for to, path in sources().items():
        place = PAGES / to
        place.parent.mkdir(parents=True, exist_ok=True)
        if to in pages:
            place.write_text(pages[to])
        else:
            shutil.copy(path, place)
    (PAGES.parent / "mkdocs.yml").write_text(configuration(set(pages)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
