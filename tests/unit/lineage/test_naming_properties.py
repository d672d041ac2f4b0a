"""What holds for every name, whatever the input."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.lineage import naming
from headwater.lineage.naming import jdbc_special_urls, jdbc_urls

SECRET = "hunter2"
odd = st.text(alphabet="abz09%!*+,;:?#&/@$~^'\"(){}[]|\\ -_.", max_size=12)
mild = st.text(alphabet="abz09%!*+$~^-_.", max_size=12)
word = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
host = st.from_regex(r"[a-z][a-z0-9\-]{0,8}(\.[a-z]{2,5})?", fullmatch=True)
port = st.one_of(st.just(""), st.integers(1, 65535).map(lambda n: f":{n}"))


@st.composite
def passwords(draw: st.DrawFn, around: st.SearchStrategy[str]) -> str:
    return draw(around) + SECRET + draw(around)


def free_of_secrets(name: naming.DatasetName) -> None:
    assert SECRET not in name.namespace
    assert SECRET not in name.name


SCHEMES = ["postgres", "mongodb", "mongodb+srv", "redis", "amqp", "kafka", "s3a", "custom"]


@given(st.sampled_from(SCHEMES), word, passwords(mild), host, port, word)
def test_no_password_survives_in_a_namespace(
    scheme: str, user: str, password: str, at: str, number: str, name: str
) -> None:
    got = naming.canonical(f"{scheme}://{user}:{password}@{at}{number}", name)
    free_of_secrets(got)
    assert got.name == name


@given(st.sampled_from(SCHEMES[:5]), word, passwords(odd), host, port, word)
def test_no_unencoded_password_survives_either(
    scheme: str, user: str, password: str, at: str, number: str, name: str
) -> None:
    free_of_secrets(naming.canonical(f"{scheme}://{user}:x{password}@{at}{number}/d", name))


@given(
    st.sampled_from(["postgresql", "mysql", "mariadb", "redshift", "clickhouse", "vertica"]),
    host,
    port,
    word,
    passwords(mild),
    st.sampled_from(["password", "PWD", "token", "sslpassword", "accessToken", "other"]),
)
def test_no_jdbc_option_survives(
    dialect: str, at: str, number: str, database: str, password: str, key: str
) -> None:
    url = f"jdbc:{dialect}://u:{password}@{at}{number}/{database}?user=u&{key}={password}&a=b"
    free_of_secrets(naming.from_jdbc(url, "s.t"))
    free_of_secrets(naming.canonical(url, "t"))


@given(host, word, passwords(odd.map(lambda text: text.replace("}", ""))))
def test_no_sql_server_password_survives(at: str, database: str, password: str) -> None:
    url = f"jdbc:sqlserver://{at};password={{{password}}};databaseName={database}"
    name = naming.from_jdbc(url, "t")
    free_of_secrets(name)
    assert name.name == f"{database}.dbo.t"


@given(word, passwords(mild), host, word)
def test_no_oracle_login_survives(user: str, password: str, at: str, service: str) -> None:
    free_of_secrets(naming.from_jdbc(f"jdbc:oracle:thin:{user}/{password}@//{at}/{service}", "T"))


@given(
    st.sampled_from(["s3", "s3a", "gs", "abfss", "wasbs", "https", "hdfs", "file", "sftp"]),
    passwords(mild),
    host,
    st.lists(word, max_size=3),
    st.sampled_from(["sig", "token", "X-Amz-Signature", "AWSAccessKeyId", "q"]),
)
def test_no_query_survives_in_a_path(
    scheme: str, password: str, at: str, path: list[str], key: str
) -> None:
    space = f"{scheme}://u:{password}@{at}"
    rest = f"/{'/'.join(path)}?{key}={password}&b=c"
    got = naming.from_uri(space + rest)
    free_of_secrets(got)
    assert "?" not in got.name
    free_of_secrets(naming.canonical(space, rest))


@given(word, passwords(mild), host, word)
def test_an_error_holds_no_secret(user: str, password: str, at: str, table: str) -> None:
    url = f"jdbc:mysql://{user}:{password}@{at}:0/?password={password}"
    with pytest.raises(naming.NamingError) as error:
        naming.from_jdbc(url, table)
    assert SECRET not in str(error.value)


DIALECTS = sorted({*jdbc_urls.PLAIN, *jdbc_special_urls.SPECIAL, "nosuch"})
address_like = st.text(alphabet="aA19:/@?#=;.,[]() %\\&{}-", max_size=24)


@given(st.sampled_from(DIALECTS), address_like, address_like)
def test_odd_jdbc_urls_are_named_or_refused(dialect: str, rest: str, table: str) -> None:
    for mark in (":", "://", ":thin:@", "://h/d;portNumber="):
        try:
            name = naming.from_jdbc(f"jdbc:{dialect}{mark}{rest}", table)
        except naming.NamingError:
            continue
        assert name.namespace
        assert name.name


@given(
    st.sampled_from(["", "s3:/", "s3a://", "abfss://", "file:", "https://", "arn:"]), address_like
)
def test_odd_paths_are_named_or_refused(scheme: str, rest: str) -> None:
    try:
        name = naming.from_uri(scheme + rest)
    except naming.NamingError:
        return
    assert name.namespace
    assert name.name


@given(st.text(max_size=40), st.text(max_size=40))
def test_canonical_never_raises_and_is_stable(namespace: str, name: str) -> None:
    once = naming.canonical(namespace, name)
    assert naming.canonical(*once) == once


@given(
    st.sampled_from(["postgres", "S3a", "kafka", "https", "abfs", "file", "jdbc:mysql", "x"]),
    st.text(alphabet="aA1:/@?#=.,[]() %\\", max_size=20),
    st.text(alphabet="aA1:/@?#=.,[]() %\\", max_size=20),
)
def test_canonical_is_stable_on_address_like_text(scheme: str, rest: str, name: str) -> None:
    once = naming.canonical(f"{scheme}://{rest}", name)
    assert naming.canonical(*once) == once


@given(st.from_regex(r"[A-Za-z0-9_.\-]{1,30}", fullmatch=True))
def test_names_keep_their_case(name: str) -> None:
    for namespace in ("kafka://k:9092", "postgres://h:5432", "mongodb://m:27017"):
        assert naming.canonical(namespace, name) == (namespace, name)


@given(st.lists(st.text(alphabet='ab."`]', min_size=1, max_size=6), min_size=1, max_size=4))
def test_quoted_identifiers_come_back(parts: list[str]) -> None:
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
    assert naming.split_identifier(quoted) == parts


@given(st.text(max_size=200))
def test_redaction_never_raises_and_settles(text: str) -> None:
    once = naming.redact(text)
    assert naming.redact(once) == once


@pytest.mark.parametrize(
    "unit", ["a", "://a:b", "password=", '"', "a@", "jdbc:oracle:thin:a/", "-"]
)
def test_redaction_of_long_text_is_quick(unit: str) -> None:
    started = time.thread_time()
    naming.redact(unit * (50_000 // len(unit)))
    assert time.thread_time() - started < 1
