"""Which endpoint addresses are taken: every refusal, and what an accepted one becomes."""

from __future__ import annotations

import pytest

from envace.endpoints.address import checked_base_url
from envace.errors import ConfigError

ALLOWED = ["127.0.0.1", "localhost", "::1", "judge.example.com"]
LINK_LOCAL = [
    "169.254.169.254",
    "2852039166",  # decimal
    "0xa9fea9fe",
    "0xA9.0xFE.0xA9.0xFE",
    "0251.0376.0251.0376",  # octal
    "025177524776",
    "169.254.43518",  # the last part stands for two bytes
    "169.16689662",
    "169.254.169.254.",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[0:0:0:0:0:ffff:a9fe:a9fe]",
    "[::169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]",
    "[fe80::1]",
    "[FE80:0:0:0:0:0:0:1]",
    "[febf::1]",
    "[fd00:ec2::254]",
    "[fec0::a9fe:a9fe]",
    "[::ffff:0:169.254.169.254]",
    "[64:ff9b:1::169.254.169.254]",
    "[2001:db8::5efe:a9fe:a9fe]",
    "[v1.a9fe]",
    "100.100.100.200",
    "168.63.129.16",
    "0.0.0.0",
    "[::]",
    "224.0.0.1",
    "255.255.255.255",
    "metadata.google.internal",
    "METADATA.google.internal",
    "metadata.azure.internal",
]


@pytest.mark.parametrize("host", LINK_LOCAL)
def test_link_local_and_metadata_addresses_are_refused_even_where_allowed(host: str) -> None:
    with pytest.raises(ConfigError):
        checked_base_url(f"http://{host}/v1", [*ALLOWED, host, host.strip("[]"), host.lower()])


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("ftp://127.0.0.1/v1", "http"),
        ("file:///etc/passwd", "http"),
        ("unix:/run/x.sock", "http"),
        ("//127.0.0.1/v1", "http"),
        ("127.0.0.1:8000/v1", "http"),
        ("", "http"),
        ("http:///v1", "host name"),
        ("http://user:secret@127.0.0.1/v1", "credentials"),
        ("http://secret@127.0.0.1/v1", "credentials"),
        ("http://127.0.0.1@evil.example/v1", "credentials"),
        ("http://127.0.0.1%40evil.example/v1", "percent"),
        ("http://%31%36%39.254.169.254/v1", "percent"),
        ("http://[fe80::1%25eth0]/v1", "percent"),
        ("http://127.0.0.1\\@evil.example/v1", "credentials"),
        ("ftp://user:secret@127.0.0.1/v1", "credentials"),
        ("user:secret@127.0.0.1:8000", "credentials"),
        ("http://user:secret@127.0.0.1:99999/v1", "credentials"),
        ("http://user:sec%20secret@127.0.0.1/v1", "credentials"),
        ("http://evil.example /v1", "spaces"),
        ("http://127.0.0.1\t.evil.example/v1", "ASCII"),
        ("http://127.0.0.1/v1\r\nHost: evil", "ASCII"),
        ("http://①②⑦.0.0.1/v1", "ASCII"),
        ("http://169。254。169。254/v1", "ASCII"),
        ("http://ⓛocalhost/v1", "ASCII"),
        ("http://127.0.0.1/v1?key=secret", "plain path"),
        ("http://127.0.0.1/v1?", "plain path"),
        ("http://127.0.0.1/v1#x", "plain path"),
        ("http://127.0.0.1/a/../v1", "plain path"),
        ("http://127.0.0.1:0/v1", "port"),
        ("http://127.0.0.1:/v1", "port"),
        ("http://127.0.0.1:99999/v1", "ort"),
        ("http://127.0.0.1:8x/v1", "ort"),
        ("http://[::1/v1", "IPv6"),
        ("http://evil.example/v1", "allowed_hosts"),
        ("http://judge.example.com.evil.example/v1", "allowed_hosts"),
        ("http://xjudge.example.com/v1", "allowed_hosts"),
        ("http://8.8.8.8/v1", "allowed_hosts"),
        ("http://127.0.0.2/v1", "allowed_hosts"),
        ("http://2130706433/v1", "usual spelling"),
        ("http://0x7f.1/v1", "usual spelling"),
        ("http://127.1/v1", "usual spelling"),
        ("http://0177.0.0.1/v1", "usual spelling"),
        ("http://-judge.example.com/v1", "usual spelling"),
        ("http://" + "a" * 3000 + "/v1", "ASCII"),
    ],
)
def test_everything_else_that_is_odd_is_refused_and_says_why(url: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        checked_base_url(url, ALLOWED)
    assert "secret@" not in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("HTTPS://Judge.Example.COM/v1", "https://judge.example.com/v1"),
        ("http://localhost", "http://localhost"),
        ("http://[0:0::1]:8000/v1", "http://[::1]:8000/v1"),
        ("http://[::ffff:127.0.0.1]:8000/v1", "http://127.0.0.1:8000/v1"),
    ],
)
def test_a_good_address_gets_one_spelling(url: str, wanted: str) -> None:
    assert checked_base_url(url, ALLOWED) == wanted


def test_no_host_is_allowed_by_default() -> None:
    with pytest.raises(ConfigError, match="allowed_hosts"):
        checked_base_url("http://127.0.0.1/v1", [])
