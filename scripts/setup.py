"""Install the Debian packages that the full test set wants; elsewhere, print the list.

Needs root on a Debian system. Nothing asks a question; another package run is waited for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

PACKAGES = {
    "python3-venv": "Debian's own Python, which makes the environment",
    "python3-dev": "its headers, for the one dependency that has no wheel",
    "dbus-daemon": "a private D-Bus, for the Wi-Fi scan through NetworkManager",
    "python3-dbusmock": "the NetworkManager that answers there",
    "python3-gi": "what the mock needs",
    "libglib2.0-bin": "gdbus, to tell the mock what it hears",
    "iw": "the Wi-Fi scan without NetworkManager",
    "postgresql": "the ledger that several stations share",
    "openssl": "an independent judge of certificates, requests and signatures",
    "curl": "another one, of TLS and HTTP",
    "jq": "another one, of JSON",
    "softhsm2": "a PKCS #11 token in software, for the device CA's key",
    "opensc-pkcs11": "a spy on that token: which calls it gets, and how often",
    "socat": "a second opinion on pseudo-terminals",
    "picocom": "a released terminal program, as a peer of the virtual modem",
    "gammu": "a released program for modems, as a peer of the virtual modem",
    "gnokii-cli": "another one",
    "modemmanager": "another one; the udev rule of docs/howto/running.md keeps it off real kits",
    "strace": "the order of writes and syncs of the outbox, traced",
    "chromium": "the live page, in a browser; pages of the documentation, looked at",
    "chromium-driver": "drives that browser in tests",
    "zsh": "a shell whose Tab key asks our completion, beside bash",
    "fish": "another one",
    "prometheus": "promtool, a judge of our metrics; its server is not needed",
    "qemu-system-arm": "emulated boards: MCUboot swaps images, a firmware talks to a virtual kit",
    "binutils-arm-none-eabi": "makes that firmware of its assembly",
    "npm": "a released client in JavaScript, as a peer of the stand-in cloud, and its Node.js",
}


def main() -> int:
    if shutil.which("apt-get") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        print("This needs root on a Debian system. What the full test set wants:")
        for name, purpose in PACKAGES.items():
            print(f"  {name:18} {purpose}")
        return 0
    # A Node.js from elsewhere brings its own npm, and Debian's conflicts with it.
    packages = [name for name in PACKAGES if name != "npm" or shutil.which("npm") is None]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300"]
    installed = ["dpkg-query", "-W", "-f", "${db:Status-Status}\n", *packages]
    state = subprocess.run(installed, capture_output=True, text=True, check=False)
    if state.returncode == 0 and set(state.stdout.split()) == {"installed"}:
        return 0
    subprocess.run([*apt, "update"], env=environment, check=True)
    command = [*apt, "install", "-y", "--no-install-recommends", *packages]
    subprocess.run(command, env=environment, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
