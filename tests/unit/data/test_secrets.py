"""Check 39: every kind of key is found, placeholders are not, and no finding tells the value."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from envace.config import Params
from envace.data.checks import Findings, Row, Violation
from envace.data.checks.secrets import KEYS, MAX_FINDINGS, check_secrets
from envace.files import compact_json

# put together here, so that no scanner takes this file for a leak
LETTERS = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0fG2hJ4kL6nP8rS"
SECRETS: dict[str, str] = {
    "a private key": "-----BEGIN " + "OPENSSH PRIVATE KEY-----",
    "an access key of Amazon's cloud": "AKIA" + "ABCD1234EFGH5678",
    "a key of Google's cloud": "AIza" + LETTERS[:35],
    "a storage key of Azure": "AccountKey=" + LETTERS * 2 + "==",
    "a token of GitHub": "ghp" + "_" + LETTERS[:36],
    "a token of GitLab": "glpat" + "-" + LETTERS[:20],
    "a token of Slack": "xoxb" + "-1234567890-" + LETTERS[:12],
    "a token of Hugging Face": "hf" + "_" + LETTERS[:34],
    "a key of OpenAI's form": "sk" + "-proj-" + LETTERS,
    "a key of Stripe": "sk" + "_live_" + LETTERS[:24],
    "a JSON web token": "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0." + LETTERS,
    "a bearer token": "Authorization: Bearer " + LETTERS,
    "an e-mail address": "zoë.b+news@mail.shop-24.co.uk",
}


def _found(record: dict[str, Any], params: Params) -> list[Violation]:
    row = Row(record, 0, params.validate_data, Findings("train", 0))
    check_secrets(row, compact_json(record))
    return row.findings.settled()


def test_there_is_an_example_of_every_kind() -> None:
    assert {kind.name for kind in KEYS} | {"an e-mail address"} == set(SECRETS)


@pytest.mark.parametrize("frame", ["{}", "Use {}, please.", '{{"token": "{}"}}', "first line\n{}\nlast", "a\\n{}\\nb"])
@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_found_by_its_kind_and_never_told(params: Params, kind: str, frame: str) -> None:
    text = frame.format(SECRETS[kind])
    (violation,) = _found({"messages": [{"content": text}]}, params)
    assert violation.check_id == 39 and violation.flag == "secret_like" and kind in violation.detail
    assert violation.pointer == "/messages/0/content"
    assert not any(SECRETS[kind][at : at + 12] in violation.detail for at in range(len(SECRETS[kind]) - 12))


@pytest.mark.parametrize(
    "text",
    [
        "ana@example.com, ben@mail.example.org, eva@shop.test, ivo@a.invalid, zoe@localhost, cleo@EXAMPLE.NET",
        "@ana and @ben.b say hi; 3 @ 4.50 each; a@b; pkg@1.2.3; git@github.com:owner/name.git",
        "AKIA is a prefix, AKIA1234 too short, xAKIAABCD1234EFGH5678, AKIAABCD1234EFGH5678X",
        "task-based-risk-management-2024 desk-1 sk-learn sk-short-1 ask-proj-" + LETTERS,
        "Bearer of good news; bearer authentication-token-goes-here; Bearer {token}",
        "eyJ is how they begin; the ghp_ prefix; xoxo-hugs-and-kisses; hf_hub_download; -----BEGIN CERTIFICATE-----",
    ],
)
def test_what_only_looks_similar_is_no_finding(params: Params, text: str) -> None:
    assert _found({"content": text}, params) == []


def test_a_key_of_an_object_that_is_an_address_is_not_told_by_the_place(params: Params) -> None:
    address = SECRETS["an e-mail address"]
    for value in ({address: 1}, {address: {"inner": "Bearer " + LETTERS}}):
        for violation in _found({"facts": value}, params):
            assert violation.pointer == "/facts" and "@" not in violation.detail + violation.pointer


def test_a_few_findings_are_enough(params: Params) -> None:
    assert len(_found({"content": " ".join(f"user{n}@mail.de" for n in range(1000))}, params)) == MAX_FINDINGS


@pytest.mark.parametrize(
    "part", ["sk-", "eyJ", "eyJaaaaaaaa.", "a@b.", "a@", "Bearer ", "-----BEGIN ", "gh", "AKIA", "x@example.com "]
)
def test_no_text_makes_the_search_slow(params: Params, part: str) -> None:
    begin = time.perf_counter()
    _found({"content": part * (1_000_000 // len(part))}, params)
    assert time.perf_counter() - begin < 5


def test_a_secret_inside_json_text_is_found(params: Params) -> None:
    arguments = json.dumps({"to": "ana\n" + SECRETS["an access key of Amazon's cloud"]})
    assert [v.check_id for v in _found({"arguments": arguments}, params)] == [39]
