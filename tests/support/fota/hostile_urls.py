"""Jobs, redirects and addresses that must lead to no fetch. Written by hand."""

GOOD = "firmware.example.com"

_SCHEMES = [
    "http", "ftp", "file", "gopher", "data", "javascript", "ldap", "dict", "tftp", "ws", "wss",
    "HTTP", "httpss", "jar", "unix", "smb",
]  # fmt: skip
_INSIDE_HOSTS = [
    "localhost", "localhost.", "LOCALHOST", "127.0.0.1", "127.1", "127.0.1", "0", "0.0.0.0",
    "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "[::1]", "[::]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "10.0.0.1", "172.16.0.1", "172.31.255.255",
    "192.168.0.1", "192.168.1.1:443", "169.254.169.254", "metadata.google.internal",
    "[fd00::1]", "[fe80::1]", "[fe80::1%25eth0]", "100.64.0.1", "224.0.0.1", "255.255.255.255",
    "[64:ff9b::a00:1]", "[2002:7f00:1::]", "kubernetes.default.svc", "instance-data", "router",
    "1.1.1.1", "[2606:4700::1111]", "198.18.0.1", "192.0.2.1", "203.0.113.9", "240.0.0.1",
]  # fmt: skip
_LOOKALIKES = [
    "evil.example", "evil.com", f"{GOOD}.evil.com", f"evil-{GOOD}", f"sub.{GOOD}", "example.com",
    f"{GOOD}.", f"{GOOD}:80", f"{GOOD}:8443", f"{GOOD}:0", f"{GOOD}:65536", f"{GOOD}:-1",
    f"{GOOD}:", f"{GOOD}:443:443", f"{GOOD}:https", f"evil.com@{GOOD}", f"{GOOD}@evil.com",
    f"user:secret@{GOOD}", f"{GOOD}#@evil.com", f"{GOOD}?@evil.com", f"{GOOD}\\@evil.com",
    f"{GOOD}\\.evil.com", f"{GOOD} .evil.com", f"{GOOD}\t", f"{GOOD}\r\nHost: evil.com",
    f"{GOOD}\n", f"{GOOD}\0", f"{GOOD}%00.evil.com", f"{GOOD}%2eevil.com", f"{GOOD}%23@evil.com",
    f"{GOOD}/..", f"{GOOD}/@evil.com", f"{GOOD}/a?b", f"//{GOOD}", f"///{GOOD}", f"\\\\{GOOD}",
    "firmware\u3002example\u3002com", "firmwar\u0435.example.com", "f\u0131rmware.example.com",
    "firmware.example.c\u200dom", "\u202emoc.elpmaxe", "\uff46irmware.example.com", "xn--",
    "*.example.com", ".example.com", "-", "..", "a..b", "[", "]", "[::1", "::1", "", " ",
    "_", "a" * 300, f"{'a' * 64}.com", "firmware_example_com", "firmware,example,com",
]  # fmt: skip
_PATHS = [
    "../a.bin", "t/../../a.bin", "t/..", "..", "./a.bin", "t/%2e%2e/a.bin", "t/%2E%2E%2Fa.bin",
    "t/.%2e/a.bin", "t/%252e%252e/a.bin", "t/%2fetc/passwd", "t\\..\\a.bin", "t/a.bin?x=@evil",
    "t/a.bin#frag", "t/a\r\nX-Evil: 1", "t/a\0.bin", "t/\u202ebin.a", "t/%5c..%5ca", "t/a\tb",
    "t/%00", "t/%252fetc",
]  # fmt: skip

HOSTILE_JOBS = (
    [(f"{scheme}://{GOOD}", "a.bin") for scheme in _SCHEMES]
    + [(host, "a.bin") for host in _INSIDE_HOSTS + _LOOKALIKES]
    + [(GOOD, path) for path in _PATHS]
    + [(GOOD, f"{scheme}://{GOOD}/a.bin") for scheme in ("http", "HTTP")]
    + [(GOOD, f"https://{host}/a.bin") for host in _INSIDE_HOSTS + _LOOKALIKES if "/@" not in host]
    + [(GOOD, f"https://{GOOD}/{path}") for path in _PATHS]
)

HOSTILE_REDIRECTS = [
    "http://firmware.example.com/a.bin",
    "//evil.com/a.bin",
    "/a.bin",
    "https:///a.bin",
    "https:firmware.example.com",
    "https://evil.com/a.bin",
    "https://firmware.example.com@evil.com/",
    "https://evil.com#firmware.example.com",
    "https://firmware.example.com/#x",
    "https://firmware.example.com:22/",
    "https://169.254.169.254/latest/meta-data/",
    "https://[::ffff:169.254.169.254]/",
    "https://127.0.0.1/",
    "https://localhost/",
    "https://user@firmware.example.com/",
    "https://:pw@firmware.example.com/",
    "https://firmware.example.com/../../x",
    "https://firmware.example.com/%2e%2e/x",
    "file:///etc/passwd",
    "data:application/octet-stream;base64,AAAA",
    "javascript:alert(1)",
    "https://firmware.example.com\\@evil.com/",
    "https://firmware.example.com /",
    "https://firmware.ex\u00e4mple.com/",
    "https://[v1.a]/",
    "",
]

HOSTILE_ADDRESSES = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.0.1",
    "192.168.0.1", "169.254.0.1", "169.254.169.254", "100.64.0.1", "100.127.255.254",
    "192.0.0.8", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1",
    "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "::ffff:169.254.169.254", "fe80::1", "fe80::1%eth0", "fc00::1",
    "fd12:3456::1", "ff02::1", "2001:db8::1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::1", "2002:c0a8:101::1", "100::1", "not-an-address", "", "1.2.3",
    "fec0::1", "3fff::1", "5f00::1", "4000::1", "2001:0:808:808::1", "192.88.99.1", "192.0.0.9",
]  # fmt: skip
