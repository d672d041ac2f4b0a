"""Which texts Java reads as a URI or a URL; each verdict is that of Java 17."""

import pytest

from headwater.server.api.java_client_urls import to_uri, to_url


@pytest.mark.parametrize(
    ("text", "as_uri", "is_url"),
    [
        ("https://git.example/a.py", None, True),
        ("HTTP://x:80/y", None, True),
        ("https://x/a b?c=[1]", "https://x/a%20b?c=%5B1%5D", True),
        ("http://[::1]:5432/x", None, True),
        ("http://[1:2]/x", "http://%5B1:2%5D/x", False),
        ("file:///tmp/x", None, True),
        ("https://x:port/", None, False),
        ("jar:file:/x", None, False),
        ("s3://bucket/a", None, False),
        ("jdbc:postgresql://db:5432/shop?a=b", None, False),
        ("kafka://a:9092,b:9092", None, False),
        ("my producer ^", "my%20producer%20%5E", False),
        ("100%", "100%25", False),
        ("1a:b", "1a%3Ab", False),
        ("http://", "http%3A%2F%2F", True),
        ("a#b#c", "a%23b%23c", False),
        ("", None, False),
    ],
)
def test_what_java_reads(text: str, as_uri: str | None, is_url: bool) -> None:
    assert to_uri(text) == (text if as_uri is None else as_uri)
    assert (to_url(text) == text) is (is_url and bool(text))
