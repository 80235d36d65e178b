"""Which addresses may be asked: http(s), a host from the allow-list, never a link-local or cloud-metadata address."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from envace.errors import ConfigError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_MAX_URL = 2048
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*")
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)")  # a last label of this shape makes a resolver read the host as IPv4
_PATH = re.compile(r"[A-Za-z0-9._~/-]*")
_FORBIDDEN = [
    ipaddress.ip_network(network)
    for network in (
        "fe80::/10",  # link-local, and the site-local addresses that were withdrawn
        "fec0::/10",
        "fd00:ec2::254/128",  # metadata services
        "fd20:ce::254/128",
        "fd00:c1::a9fe:a9fe/128",
        "fd00:42::42/128",
        "0.0.0.0/8",  # "this host", multicast and reserved: no server's address
        "::/128",
        "224.0.0.0/4",
        "ff00::/8",
        "240.0.0.0/4",
    )
]
_FORBIDDEN_IPV4 = [
    ipaddress.IPv4Network(network)
    for network in (
        "169.254.0.0/16",  # link-local; metadata services of most clouds
        "100.100.100.200/32",  # metadata services elsewhere
        "168.63.129.16/32",
        "192.0.0.192/32",
    )
]
"""Refused also as the last 32 bits of any IPv6 address: translators put them there in more ways than can be listed."""
_METADATA_NAMES = {
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
    "instance-data",
    "instance-data.ec2.internal",
}
_CARRIES_IPV4 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))  # in the last 32 bits


def checked_base_url(url: str, allowed_hosts: Iterable[str]) -> str:
    """The base URL in one canonical spelling, without a slash at its end.

    Raises ConfigError unless it is http(s), plain (no credentials, query or fragment), its host is one of
    `allowed_hosts` (compared without case, addresses by value), and it is no link-local, metadata or reserved address,
    however spelt. An IPv4 address must be written as four decimal numbers. No host is looked up here.
    """
    if "@" in url:  # before any refusal that would quote it
        raise _refusal("", "credentials do not belong in it; name the key's environment variable in api_key_env")
    if not url.isascii() or not url.isprintable() or len(url) > _MAX_URL or set(url) & set(" \\%"):
        raise _refusal(url, "it may hold only plain ASCII without spaces, backslashes or percent signs")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise _refusal(url, str(error)) from None
    if parts.scheme not in ("http", "https"):
        raise _refusal(url, "it must begin with http:// or https://")
    if "?" in url or "#" in url or not _PATH.fullmatch(parts.path) or ".." in parts.path or "//" in parts.path:
        raise _refusal(url, "it must end with a plain path, for example /v1")
    if port == 0 or parts.netloc.endswith(":"):
        raise _refusal(url, "its port must be a number from 1 to 65535")
    canonical = None if "[" in parts.netloc and ":" not in host else _canonical_host(host)
    if canonical is None:
        raise _refusal(url, f"{host!r} is neither a host name nor an address in its usual spelling")
    if reason := forbidden(canonical):
        raise _refusal(url, f"{host} is {reason}")
    if canonical not in {_canonical_host(allowed) for allowed in allowed_hosts}:
        raise _refusal(url, f"{host} is not one of allowed_hosts; add it there if you trust it")
    written = f"[{canonical}]" if ":" in canonical else canonical
    return f"{parts.scheme}://{written}{f':{port}' if port else ''}{parts.path}".rstrip("/")


def forbidden(host: str) -> str | None:
    """Why a host name or numeric address must not be asked, or None."""
    if host in _METADATA_NAMES:
        return "a cloud's metadata service"
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    last = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    for network in _FORBIDDEN_IPV4:
        if last in network:
            return f"a link-local, metadata or reserved address (in {network})"
    for each in (address, *_embedded(address)):
        for network in (*_FORBIDDEN, *_FORBIDDEN_IPV4):
            if each.version == network.version and each in network:
                return f"a link-local, metadata or reserved address (in {network})"
    return None


def _canonical_host(host: str) -> str | None:
    host = host.lower().removeprefix("[").removesuffix("]")
    try:
        if ":" in host or _NUMBER.fullmatch(host.rpartition(".")[2]):
            address = ipaddress.ip_address(host)
            mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
            return str(mapped or address)
    except ValueError:
        return None
    return host if _NAME.fullmatch(host) else None


def _embedded(address: Address) -> list[Address]:
    """The IPv4 addresses that an IPv6 address stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found: list[Address | None] = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    # ::1 is loopback and stands for no other
    if int(address) > 1 and any(address in network for network in _CARRIES_IPV4):
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [each for each in found if each is not None]


def _refusal(url: str, reason: str) -> ConfigError:
    return ConfigError(f"endpoint address {url[:200]!a}: {reason}" if url else f"endpoint address: {reason}")
