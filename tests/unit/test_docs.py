"""The generated parts of the docs say what the code says."""

from scripts import docs


def test_generated_parts_are_up_to_date() -> None:
    assert list(docs.outdated()) == [], "run make docs"
