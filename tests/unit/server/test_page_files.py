from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from headwater.server.http import HttpError, Request
from headwater.server.http.page_files import PageFiles

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.server.http import Response


@pytest.fixture
def page(tmp_path: Path) -> PageFiles:
    built = tmp_path / "built"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("<!doctype html><title>Headwater</title>")
    (built / "assets" / "index-1a2b.js").write_text("export {};" * 50)
    return PageFiles(built)


def ask(page: PageFiles, path: str, method: str = "GET", **headers: str) -> Response:
    pairs = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    request = Request({"method": method, "path": path, "raw_path": path.encode(), "headers": pairs})
    assert page.wants(request)
    return page.answer(request)


def header(response: Response, name: str) -> str:
    return dict(response.headers)[name.encode()].decode()


@pytest.mark.parametrize(
    "path", ["/", "/graph", "/datasets/s3%3A%2F%2Fa/b%2Fc", "/runs/1", "/events"]
)
def test_every_page_is_the_document(page: PageFiles, path: str) -> None:
    found = ask(page, path)
    assert (found.status, b"<title>" in found.content) == (200, True)
    assert header(found, "cache-control") == "no-cache"


def test_an_unknown_page_is_the_document_with_404(page: PageFiles) -> None:
    assert ask(page, "/nowhere").status == 404


def test_assets_last_and_are_packed(page: PageFiles) -> None:
    found = ask(page, "/assets/index-1a2b.js", accept_encoding="gzip, br")
    assert "immutable" in header(found, "cache-control")
    assert header(found, "content-type").startswith("text/javascript")
    assert gzip.decompress(found.content).startswith(b"export")
    assert ask(page, "/assets/index-1a2b.js").content.startswith(b"export")
    again = ask(page, "/assets/index-1a2b.js", if_none_match=header(found, "etag"))
    assert (again.status, again.content) == (304, b"")


def test_a_missing_asset_is_not_the_document(page: PageFiles) -> None:
    with pytest.raises(HttpError, match="404"):
        ask(page, "/assets/gone.js")


def test_the_policy_allows_no_inline_script_and_no_stranger(page: PageFiles) -> None:
    policy = header(ask(page, "/"), "content-security-policy")
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "http" not in policy
    assert header(ask(page, "/"), "x-content-type-options") == "nosniff"


def test_files_outside_are_out_of_reach(page: PageFiles, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    for path in ("/../secret.txt", "/..%2Fsecret.txt"):
        assert b"secret" not in ask(page, path).content
    with pytest.raises(HttpError, match="404"):
        ask(page, "/assets/..%2f..%2fsecret.txt")


def test_without_a_build_the_answer_says_how_to_make_one(tmp_path: Path) -> None:
    found = ask(PageFiles(tmp_path / "none"), "/graph")
    assert found.status == 404
    assert b"npm run build" in found.content


def test_the_api_is_not_the_pages_business() -> None:
    for method, path in (("GET", "/api/v2/none"), ("POST", "/")):
        request = Request(
            {"method": method, "path": path, "raw_path": path.encode(), "headers": []}
        )
        assert not PageFiles.wants(request)
