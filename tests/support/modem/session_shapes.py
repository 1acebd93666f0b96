"""One session in every shape that people paste: each of them is to be read as the same lines.

Written by hand, after what the tools print.
"""

from __future__ import annotations

import html
import json
import re

from at.transcripts.logs.lines import Side

SENT, RECEIVED = Side.SENT, Side.RECEIVED
SESSION = (
    (SENT, "AT+CGMR"),
    (RECEIVED, "mfw_nrf9160_1.3.7"),
    (RECEIVED, "OK"),
    (SENT, "AT+CEREG?"),
    (RECEIVED, '+CEREG: 5,2,"002F","0012BEEF",7'),
    (RECEIVED, "OK"),
    (SENT, "AT%XSYSTEMMODE=1,0,1,0"),
    (RECEIVED, "OK"),
    (RECEIVED, "+CEREG: 3,,,,0,15"),
    (SENT, "AT+CFUN=1"),
    (RECEIVED, "+CME ERROR: 0"),
)


def log_of(sent: str, received: str, end: str = "\n") -> str:
    """Return the session as a tool writes it that puts each line into a form."""
    forms = {SENT: sent, RECEIVED: received}
    return "".join(forms[side].format(text) + end for side, text in SESSION)


MARKED = {
    "bare": log_of("{}", "{}"),
    "CR LF": log_of("{}", "{}", "\r\n"),
    "CR CR LF": log_of("{}", "{}", "\r\r\n"),
    "> AT..": log_of("> {}", "{}"),
    "> and <": log_of("> {}", "< {}"),
    "AT> / AT<": log_of("AT> {}", "AT< {}"),
    "TX: / RX:": log_of("TX: {}", "RX: {}"),
    "as the modem's end has it": log_of("RX: {}", "TX: {}"),
    "in words, as the modem's end has it": log_of("Received: {}", "Sent: {}"),
    "what was received alone, with its echo": log_of("RX: {}", "RX: {}"),
    "modem >> / modem <<": log_of("modem >> {}", "modem << {}"),
    "modem << / modem >>": log_of("modem << {}", "modem >> {}"),
    "times and levels, then marks": log_of(
        "2026-02-10T12:00:00.1 DEBUG modem << {}", "2026-02-10T12:00:00.2 DEBUG modem >> {}"
    ),
    "> for both": log_of("> {}", "> {}"),
    "quoted again and again": log_of("> > > {}", "> > > {}"),
    "quoted without blanks": log_of(">>> {}", ">>> {}"),
    "fenced": f"```text\n{log_of('{}', '{}')}```\n",
    "[AT+X] / {+X}": log_of("[{}]", "{{{}}}"),
    "Arduino's monitor": log_of("10:00:00.250 -> {}", "10:00:00.250 -> {}"),
    "reversed arrows": log_of("<- {}", "-> {}"),
    "a name in brackets before arrows": log_of("[AT] >>> {}", "[AT] <<< {}"),
    "a name in round ones before arrows": log_of("(modem 1) > {}", "(modem 1) < {}"),
    "a name for each side before arrows": log_of("[Host] -> {}", "[nRF9151] <- {}"),
    "times, then marks": log_of("2026-02-10 12:00:00.100 TX: {}", "2026-02-10 12:00:00.200 RX: {}"),
    "grabserial's times": log_of("[12:00:00.100000 0.000001] {}", "[12:00:00.200000 0.100000] {}"),
    "C-Kermit's time": log_of("12:00:00.100: {}", "12:00:00.200: {}"),
    "RTT": log_of("00> {}", "00> {}"),
    "times, then RTT": log_of("[12:00:00.100] 00> {}", "[12:00:00.100] 00> {}"),
    "a shell's at": log_of("uart:~$ at {}", "{}"),
    "a prompt of one's own": log_of("tracker-2> {}", "{}"),
    "a shell's own prompt": log_of("00> nrf91 # modem at {}", "00> {}"),
    "a Linux shell's program": log_of("root@gw-7:~# gsmctl -A '{}'", "{}"),
    "a Linux shell's option": log_of('kit@gw:/tmp$ mmcli -m 0 --command="{}"', "{}"),
    "Kannel": log_of(
        "2026-02-10 12:00:00 [811] [6] DEBUG: AT2[gw1]: --> {}^M",
        "2026-02-10 12:00:00 [811] [6] DEBUG: AT2[gw1]: <-- {}",
    ),
    "a shell's at in quotes": log_of("mosh:~$ at '{}'", "{}"),
    "a shell over RTT": log_of("00> rtt:~$ at {}", "00> {}"),
    "coloured prompt": log_of("\x1b[1;32muart:~$ \x1b[mat {}", "{}"),
    "<cr><ln>": log_of("{}<cr><ln>", "<cr><ln>{}<cr><ln>"),
    "␊": log_of("{}␊", "{}␍␊"),
    "\\r\\n": log_of("{}\\r", "\\r\\n{}\\r\\n"),
    "<cr><ln> on one line": log_of("{}", "{}", "<cr><ln>"),
    "␊ on one line": log_of("{}", "{}", "␊"),
    "quotes": log_of('Sent: "{}"', "Received: '{}'"),
    "loguru": log_of(
        "2026-02-10 12:00:00.100 | DEBUG    | kit.port:write:36 - > {}",
        "2026-02-10 12:00:00.200 | DEBUG    | kit.port:read:41 - < {}",
    ),
    "loguru, marked by nothing": log_of(
        "2026-02-10 12:00:00.100 | INFO     | __main__:<module>:36 - {}",
        "2026-02-10 12:00:00.200 | INFO     | __main__:<module>:36 - {}",
    ),
    "a command that was sent": log_of(
        "[58] DEBUG: Sent AT command: {}", "[60] DEBUG: Received response: {}"
    ),
    "the bytes of Python": log_of("TX: b'{}\\r\\n'", "RX: b'{}\\r\\n'"),
    "bytes of Python without a mark": log_of("b'{}\\r'", "b'\\r\\n{}\\r\\n'"),
    "a list of bytes": log_of("[b'{}\\r',", " b'{}\\r\\n',"),
    "bytes, what was sent marked": log_of(">>> b'{}\\r'", "b'{}\\r\\n'"),
    "bytes behind TX alone": log_of("TX: b'{}\\r'", "b'{}\\r\\n'"),
    "numbered": log_of("1. {}", "2. {}"),
    "numbered in brackets": log_of("1) {}", "(2) {}"),
    "numbered steps with answers": log_of("3. {}", "{}"),
    "a list": log_of("* {}", "{}"),
    "journald": log_of(
        "Nov 02 10:00:01 gw-7 modemd[8]: TX: {}", "Nov 02 10:00:01 gw-7 modemd[8]: RX: {}"
    ),
    "journald, ISO": log_of(
        "2026-11-02T10:00:01+0100 gw-7 at[8]: > {}", "2026-11-02T10:00:01+0100 gw-7 at[8]: < {}"
    ),
    "syslog": log_of("<134>Nov  2 10:00:01 gw-7 at: > {}", "<134>Nov  2 10:00:01 gw-7 at: < {}"),
    "syslog, RFC 5424": log_of(
        "<134>1 2026-11-02T10:00:01.123Z gw-7 at 8 - - > {}",
        "<134>1 2026-11-02T10:00:01.123Z gw-7 at 8 - - < {}",
    ),
    "containers": log_of("kit-1  | 2026-11-02T10:00:01.1Z > {}", "kit-1  | < {}"),
    "a container's file": log_of(
        "2026-11-02T10:00:01.1Z stdout F > {}", "2026-11-02T10:00:01.1Z stdout F < {}"
    ),
    "a pod": log_of("[pod/kit-6f/at] > {}", "[pod/kit-6f/at] < {}"),
    "a CI's job": log_of(
        "test\tRun\t2026-11-02T10:00:01.1Z > {}", "test\tRun\t2026-11-02T10:00:01.1Z < {}"
    ),
    "Tera Term": log_of("[Mon Nov 02 10:00:01.123 2026] {}", "[Mon Nov 02 10:00:01.123 2026] {}"),
    "seconds since 1970": log_of("1793613600.25 TX: {}", "1793613600.5 RX: {}"),
    "Python's logging": log_of(
        "2026-11-02 10:00:01,1 - at - DEBUG - TX: {}", "2026-11-02 10:00:01,1 - at - DEBUG - RX: {}"
    ),
    "ModemManager": log_of("<dbg> [1700000000.5] [tty/at] --> '{}<CR>'", "<dbg> <-- '{}<CR><LF>'"),
    "Python's logging, short": log_of("DEBUG:at.port:-> {}", "DEBUG:at.port:<- {}"),
    "Python's logging, words": log_of("INFO:at.port:TX: {}", "INFO:at.port:RX: {}"),
    "a tag, then marks": log_of("[COM3] TX {}", "[COM3] RX {}"),
    "GitLab's job": log_of(
        "2026-11-02T10:00:01.000000Z 01O > {}", "2026-11-02T10:00:01.000000Z 01O < {}"
    ),
    "GitLab's job, bare": log_of(
        "2026-11-02T10:00:01.000000Z 01O {}", "2026-11-02T10:00:01.000000Z 01O+{}"
    ),
    "milliseconds since 1970": log_of("1793613600250 > {}", "1793613600500 < {}"),
    "milliseconds in brackets": log_of("[1793613600250] {}", "[1793613600500] {}"),
    "RTT, one digit": log_of("0> {}", "0> {}"),
    "RTT, the kit's time behind": log_of("00> [00:00:01.250,000] {}", "00> [00:00:01.5,000] {}"),
    "a date of Germany": log_of("01.12.2026 10:00:01.250 {}", "01.12.2026 10:00:01.500 {}"),
    "a date of America": log_of("[12/1/2026 3:00:01 PM] TX: {}", "[12/1/2026 3:00:01 PM] RX: {}"),
    "half a day": log_of("10:00:01 AM > {}", "10:00:01 AM < {}"),
    "microseconds behind a month": log_of("Dec  1 10:00:01.250000 {}", "Dec  1 10:00:01.5 {}"),
    "seconds since 1970 and a colon": log_of("1793613600.25: > {}", "1793613600.50: < {}"),
    "seconds, and those since the line before": log_of("[1.250000 0.250000] {}", "[1.5 0.25] {}"),
    "what script sets around a session": 'Script started on 2026-12-01 10:00:00+00:00 [TTY="x"]\n'
    + log_of("{}", "{}")
    + '\nScript done on 2026-12-01 10:01:00+00:00 [COMMAND_EXIT_CODE="0"]\n',
    "a terminal's own heading": "=~=~=~=~= PuTTY log 2026.12.01 10:00:00 =~=~=~=~=\n"
    + log_of("{}", "{}"),
    "picocom's": (
        "picocom v3.1\n\nport is        : /dev/ttyACM0\nflowcontrol    : none\n"
        "databits are   : 8\nsend_cmd is    : sz -vv\nemap is        : crcrlf,delbs,\n"
        "initstring     : none\nexit_after is  : not set\n\n"
        "Type [C-a] [C-h] to see available commands\nTerminal ready\n"
    )
    + log_of("{}", "{}")
    + "\nThanks for using picocom\n",
    "microcom's": "connected to /dev/ttyACM0\nEscape character: Ctrl-\\\n"
    "Type the escape character to get to the prompt.\n" + log_of("{}", "{}"),
    "miniterm's": "--- Miniterm on /dev/ttyACM0  115200,8,N,1 ---\n"
    "--- Quit: Ctrl+] | Menu: Ctrl+T | Help: Ctrl+T followed by Ctrl+H ---\n" + log_of("{}", "{}"),
    "PlatformIO's in an editor": " *  Executing task: platformio device monitor \n\n"
    "--- Terminal on /dev/ttyACM0 | 115200 8-N-1\n"
    "--- Available filters and text transformations: colorize, debug, default\n"
    "--- More details at https://bit.example/pio-monitor-filters\n"
    "--- Quit: Ctrl+C | Menu: Ctrl+T | Help: Ctrl+T followed by Ctrl+H\n"
    + log_of("{}", "{}")
    + " *  Terminal will be reused by tasks, press any key to close it. \n",
    "month and day, with points": log_of("[12.01 10.00.01.250]{}", "[12.01 10.00.01.500]{}"),
    "minicom's": "Welcome to minicom 2.8\n\nOPTIONS: I18n \nPort /dev/ttyACM0, 10:00:01\n\n"
    "Press CTRL-A Z for help on special keys\n\n"
    + log_of("{}", "{}")
    + "\nCTRL-A Z for help | 115200 8N1 | NOR | Minicom 2.8 | VT102 | Offline | ttyACM0\n",
    "tio's, with its times": "\x1b[1m[10:00:00.940] tio v2.5\x1b[0m\n"
    "\x1b[1m[10:00:00.941] Press ctrl-t q to quit\x1b[0m\n"
    "\x1b[1m[10:00:00.943] Connected\x1b[0m\n" + log_of("{}", "\x1b[1m[10:00:01.500] \x1b[0m{}"),
    "brackets and a dash": log_of(
        "01.12.2026 10:00:01.250 [TX] - {}<CR><LF>", "01.12.2026 10:00:01.500 [RX] - <CR>{}<CR><LF>"
    ),
    "a word in Chinese": log_of("[10:00:01.250]发→◇{}□", "[10:00:01.500]收←◆{}"),
    "columns between pipes": log_of("18.957|main|app|I|TX: {}␊", "18.960|main|app|I|RX: {}␊"),
    "nrf-modem": log_of("1.25 TRACE AT -> {}", "1.5 TRACE AT <- {}"),
    "nrf-modem with its places": log_of(
        "1.25 TRACE AT -> {}\n└─ nrf_modem::at::{{impl#0}}::poll @ /home/me/src/at.rs:170",
        "1.5 TRACE AT <- {}\n└─ nrf_modem::at::{{impl#0}}::poll @ /home/me/src/at.rs:201",
    ),
    "levels, then arrows": log_of("DEBUG   -> {}", "DEBUG   <- {}"),
    "RealTerm's marks": log_of("{}CR", "CRLF{}CRLF").replace("CR\n", "CRCRLF\n"),
    "esp_modem": log_of(
        "V (1234) command_lib: Token: {{{}}}", "V (1250) command_lib: Token: {{{}}}\n"
    ),
    "esp_modem without its tokens": log_of(
        "D (1234) command_lib: generic_command command {}\n", "D (1250) command_lib: Response: {}\n"
    ),
    "twister": log_of("D: DEVICE: {}", "D: DEVICE: {}"),
    "twister's shell": log_of("DEBUG   - DEVICE: uart:~$ at {}", "DEBUG   - DEVICE: {}"),
    "signs that nobody sees": log_of("\u200b{}\u200b", "\ufeff{}\u2060"),
    "signs that nobody sees, before marks": log_of("\u2060> {}", "\u2060< {}"),
    "bytearray": log_of("TX: bytes('{}\\r')", "RX: bytearray(b'\\r\\n{}\\r\\n')"),
    "dmesg in German": log_of("[Mi Mai  6 10:00:01 2026] {}", "[Mi Mai  6 10:00:01 2026] {}"),
    "Tera Term in Japanese": log_of(
        "[\u6c34 5\u6708 06 10:00:01.123 2026] {}", "[\u6c34 5\u6708 06 10:00:01.123 2026] {}"
    ),
    "Tera Term, since it began": log_of("[0 10:00:01.123] {}", "[0 10:00:01.123] {}"),
    "Android's log in brief": log_of("D/AtModem( 1234): > {}", "D/AtModem( 1234): < {}"),
    "Rust's tracing": log_of(
        "2026-05-06T10:00:01.1Z DEBUG modem::at: -> {}",
        "2026-05-06T10:00:01.2Z DEBUG modem::at: <- {}",
    ),
    "Go's zap": log_of(
        "2026-05-06T10:00:01.1Z\tDEBUG\tat/port.go:12\t> {}",
        "2026-05-06T10:00:01.2Z\tDEBUG\tat/port.go:12\t< {}",
    ),
    "twister's harness by itself": log_of(
        "17:01:18.4:DEBUG:twister_harness.device.device_adapter: #: uart:~$ at {}",
        "17:01:18.493:DEBUG:twister_harness.device.device_adapter: #: {}",
    ),
    "twister's harness": log_of(
        "DEBUG   - PYTEST: DEBUG:twister_harness.device.device_adapter:#: uart:~$ at {}",
        "DEBUG   - PYTEST: DEBUG:twister_harness.device.device_adapter:#: {}",
    ),
    "an ESP32 that is the host": log_of("I (1234) modem: TX: {}", "I (1250) modem: RX: {}"),
    "an ESP32's arrows": log_of("I (1234) modem: --> {}", "I (1250) modem: <-- {}"),
    "arrows in parentheses": log_of("(10:00:01.25) (<<) {}<CR>", "(10:00:01.5) (>>) {}<CR><LF>"),
    "what a Go library wrote and read": log_of(
        "2026/11/02 10:00:01 w: {}", "2026/11/02 10:00:01 r:\n{}\n"
    ),
    "an arrow before an answer alone": log_of("{}", "→ {}"),
    "an arrow to the left before an answer alone": log_of("{}", "<- {}"),
    "a long arrow before an answer alone": log_of("{}", "--> {}"),
    "a manual's prompt": log_of("$ at {}", "{}"),
    "Markdown": log_of("**{}**", "`{}`"),
    "tags without blanks": log_of("[MODEM][TX] {}", "[MODEM][RX] {}"),
    "a prompt of Windows": log_of("PS C:\\kit> python at.py {}", "{}"),
    "defmt's place": log_of(
        "[DEBUG] AT -> {} (kit src/at.rs:10)", "[DEBUG] AT <- {}\\r\\n (kit src/at.rs:12)"
    ),
    "Rust's env_logger": log_of(
        "[2026-11-02T10:00:01Z DEBUG kit::at] > {}", "[2026-11-02T10:00:01Z DEBUG kit::at] < {}"
    ),
    "labgrid": log_of(
        "DEBUG:labgrid.driver.serialdriver:Write 9 bytes: b'{}\\r'",
        "DEBUG:labgrid.driver.serialdriver:Read 20 bytes: b'{}\\r\\n', timeout 1.00",
    ),
    "an object by the names of a table": log_of(
        "{{ direction: 'tx', data: '{}' }}", "{{ direction: 'rx', data: '{}' }}"
    ),
    "such a dict of Python": log_of(
        "{{'time': 1.5, 'dir': 'TX', 'data': b'{}\\r'}}", "{{'dir': 'RX', 'data': b'{}\\r\\n'}}"
    ),
    "steps in Chinese": log_of("命令7 发\uff1a{}", "{}"),
    "defmt": log_of("0.125000 DEBUG > {}", "0.250000 DEBUG < {}"),
    "a UART's name": log_of("UART1 TX: {}", "UART1 RX: {}"),
    "AT command and response": log_of("AT command: {}", "AT response: {}"),
    "a shell's modem at": log_of("uart:~$ modem at {}", "{}"),
    "an arrow and a word": log_of("> TX: {}", "< RX: {}"),
    "an arrow for both, and a word": log_of("> TX: {}", "> RX: {}"),
    "words of doing": log_of("Sending: {}", "Received: {}"),
    "tabs": log_of("10:00:01\tTX\t{}", "10:00:02\tRX\t{}"),
    "host and modem": log_of("Host: {}", "Modem: {}"),
    "over an arrow": log_of("MCU->Modem: {}", "Modem->MCU: {}"),
    "the other end's name and an arrow": log_of("PC -> {}", "DEV -> {}"),
    "command and response": log_of("Command: {}", "Response: {}"),
    "escaped for HTML": html.escape(log_of("> {}", "< {}")),
    "escaped for HTML, bare": html.escape(log_of("{}", "{}")),
    "a literal behind a word": log_of("TX b'{}\\r\\n'", "RX b'{}\\r\\n'"),
    "Python's logging, the name of the logger behind the level": log_of(
        "2026-11-02 10:00:01,250 DEBUG at.port: >>> b'{}\\r'",
        "2026-11-02 10:00:01,500 DEBUG at.port: <<< b'\\r\\n{}\\r\\n'",
    ),
    "a logger's name in a column of its own before the level": log_of(
        "[00:00:01.250,000] modem        DEBUG: --> {}",
        "[00:00:01.500,000] modem        DEBUG: <-- {}",
    ),
    "Python's strings": log_of("'{}\\r'", "'{}\\r\\n'"),
    "Python's tuples": log_of("('tx', b'{}\\r')", "('rx', b'{}\\r\\n')"),
    "Python's dicts": log_of("{{'tx': b'{}\\r'}}", "{{'rx': b'{}\\r\\n'}}"),
    "Python's calls": log_of(">>> port.write(b'{}\\r')", "b'{}\\r\\n'"),
    "a table": "\n".join(
        ("| time | direction | data |", "|---|---|---|", log_of("|1.0|TX|{}|", "|1.5|RX|{}|"))
    ),
    "a mark in the kit's log": log_of(
        "[00:00:01.250,000] <inf> modem: AT> {}", "[00:00:01.500,000] <inf> modem: AT< {}"
    ),
    "a word in the kit's log": log_of(
        "[00:00:01.250,000] <dbg> lte_uart: TX: {}", "[00:00:01.500,000] <dbg> lte_uart: RX: {}"
    ),
    "an arrow in the kit's log, by way of a terminal": log_of(
        "[10:00:01] 00> [00:00:01.250,000] <dbg> app: at: > {}", "<dbg> app: at: < {}"
    ),
    "Zephyr's modem_chat": re.sub(
        r"(?<=_command: \+CEREG:)(.*)",
        lambda fields: f" {fields[1].replace(',', ' ')}",
        log_of(
            "[00:00:01.250,000] <dbg> modem_chat: modem_chat_script_next: sending: {}",
            "[00:00:01.500,000] <dbg> modem_chat: modem_chat_log_received_command: {}",
        ),
    ),
    "an older modem_chat": log_of(
        "[00:00:01.250,000] <dbg> modem_chat.modem_chat_script_next: sending: {}",
        "[00:00:01.500,000] <dbg> modem_chat.modem_chat_on_unknown_command_received: {}",
    ),
    "a transcript's steps": log_of("@0.100000 > {}", "@0.200000 < {}"),
    "milliseconds since the start": log_of("1529 ms > {}", "1540 ms < {}"),
    "a desktop tool that breaks a line behind LF": log_of(
        "3/3/2026 12:01:02.345 [TX] - {}<CR>", "3/3/2026 12:01:02.395 [RX] - <CR><LF>\n{}<CR><LF>"
    ),
    "Android's log": log_of(
        "03-03 12:01:02.345  1234  1250 D RILC    : AT> {}",
        "03-03 12:01:02.395  1234  1250 D RILC    : AT< {}",
    ),
    "smstools": log_of("2026-11-02 12:05:00,7, GSM1: -> {}", "2026-11-02 12:05:01,7, GSM1: <- {}"),
    "oFono": log_of("ofonod[123]: Modem: > {}\\r", "ofonod[123]: Modem: < \\r\\n{}\\r\\n"),
    "strace": log_of("write(3, '{}\\r', 9)    = 9", "read(3, '\\r\\n{}\\r\\n', 256) = 26"),
    "Python's tuples with times": log_of("(1.5, 'tx', b'{}\\r')", "(1.75, 'rx', b'{}\\r\\n')"),
    "a port": log_of(
        "2026-11-02 10:00:01 /dev/ttyUSB82 {}", "2026-11-02 10:00:01 /dev/ttyUSB82 {}"
    ),
    "a port, then a mark": log_of("COM5: > {}", "[COM5] {}"),
    "a list for an answer": log_of("DEBUG: write: {}", "DEBUG: response: ['{}']"),
    "pytest's log": log_of(
        "INFO     at.port:port.py:42 TX: {}", "DEBUG    at.port:port.py:43 RX: {}"
    ),
    "pytest's live log": log_of(
        "2026-11-02 10:00:01 [    INFO] TX: {}", "2026-11-02 10:00:01 [   DEBUG] RX: {}"
    ),
    "a host's shell": log_of("uart:~$ > slm {}", "{}"),
    "Visual Studio Code's Serial Monitor": (
        "---- Opened the serial port /dev/ttyACM0 ----\n"
        + log_of('---- Sent utf8 encoded message: "{}\\r\\n" ----', "{}")
        + "---- Closed serial port /dev/ttyACM0 ----\n"
    ),
    "pppd's chat, as a web page shows it": log_of(
        "Nov 2 10:00:01 pi chat[611]: send ({}^M)", "Nov 2 10:00:01 pi chat[611]: {}^M"
    ),
    "pppd's chat": log_of("Nov  2 10:00:01 pi chat[611]: send (\\d{}^M)", "chat[611]: {}^M"),
    "pppd's chat, by OpenWrt": log_of(
        "Mon Nov  2 10:00:01 2026 local2.info chat[611]: send ({}^M)",
        "Nov  2 10:00:02 pi local2.info chat[611]: {}",
    ),
    "cat -v": log_of("{}^M", "{}^M"),
    "cat -A": log_of("{}^M$", "{}^M^M$"),
    "a program's name for the modem": log_of("bgxx: >> {}", "bgxx: << {}"),
    "PlatformIO's monitor, then a name": log_of(
        "10:00:01.250 > bgxx: >> {}", "10:00:01.500 > bgxx: << {}"
    ),
    "Mbed OS": log_of(
        "[00030546ms][INFO][CELL]: AT TX ( 7): {}\n[00030610ms][INFO][CELL]: AT TX ( 1): <cr>",
        "[00030710ms][INFO][CELL]: AT RX (16): <cr><ln>{}<cr><ln>",
    ),
    "Mbed OS, with the date": log_of(
        "[1606200996748ms][INFO][CELL]: AT TX ( 7): {}<cr>",
        "[1606200996748ms][INFO][CELL]: AT RX (16): <cr><ln>{}<cr><ln>",
    ),
    "a day and a date in a mail": log_of(
        "> Fri 2026/04/24 13:07:54 at[38]: TX: {}", "> Fri 2026/04/24 13:07:55 at[38]: RX: {}"
    ),
    "Mbed OS, a character a line": "".join(
        "".join(f"[INFO][CELL]: AT RX ( 1): {sign}\n" for sign in (*text, "<cr>", "<ln>"))
        if side is RECEIVED
        else f"[INFO][CELL]: AT TX ({len(text)}): {text}\n[INFO][CELL]: AT TX ( 1): <cr>\n"
        for side, text in SESSION
    ),
    "Particle's Device OS": log_of(
        "0000033386 [ncp.at] TRACE: > {}", "0000033390 [ncp.at] TRACE: < {}"
    ),
    "Particle's older Device OS": re.sub(
        r'(AT read.*? ")(.*)"',
        lambda line: line[1] + line[2].replace('"', '\\"') + '"',
        log_of(
            '    20.853 AT send      11 "{}\\r\\n"', '    20.858 AT read OK    6 "\\r\\n{}\\r\\n"'
        ),
    ),
    "Zephyr's driver of the HL7800": log_of(
        "[00:00:01.250,000] <dbg> modem_hl7800: send_at_cmd: OUT: [{}]",
        "[00:00:01.500,000] <dbg> modem_hl7800: hl7800_rx: HANDLE {} (len:0)",
    ),
    "Zephyr's older drivers": log_of(
        "[00:00:01.250,000] <dbg> modem_hl7800: send_at_cmd: OUT: [{}]",
        "[00:00:01.500,000] <dbg> modem_cmd_handler.process_rx_buf: match cmd [{}] (len:2)",
    ),
    "Zephyr's log at its smallest": log_of("D: Sending AT command to set NB-IoT: {}", "D: {}"),
    "objects of JSON, the direction by another name": "".join(
        json.dumps({"at": "2026-05-06T10:00:01Z", "event": side.value[:4], "line": text}) + "\n"
        for side, text in SESSION
    ).replace("rece", "rx"),
    "objects of a logger with a name": "".join(
        json.dumps({"level": "debug", "name": "at", "message": text}) + "\n" for _, text in SESSION
    ),
    "Go's slog": "".join(
        f"time=2026-05-06T10:00:01.1Z level=DEBUG msg={side.value} data={json.dumps(text)}\n"
        for side, text in SESSION
    )
    .replace("msg=sent", "msg=TX")
    .replace("msg=received", "msg=RX"),
    "an array of JSON": "".join(
        (
            "[",
            ",".join(json.dumps({"direction": side.value, "data": text}) for side, text in SESSION),
            "]",
        )
    ),
    "an array in an object of JSON, indented": json.dumps(
        {"events": [{"direction": side.value, "data": text} for side, text in SESSION]}, indent=2
    ),
    "a function's name": log_of(">>> lte.send_at_cmd('{}')", "'\\r\\n{}\\r\\n'  # answered"),
    "a dash behind the time": log_of("0:00:01:250 - {}", "0:00:01:500 - {}"),
    "RouterOS": log_of("15:24:02 lte,async lte2: sent {}", "15:24:02 lte,async,raw lte2: rcvd {}"),
    "WvDial, an older one": log_of("WvDial Modem<*1>: {}", "WvDial Modem<*1>: {}"),
    "ESPHome's esp_modem": log_of(
        "[10:00:01][D][esp-idf:000][uart_task]: V (4800) command_lib: Token: {{{}}}",
        "[10:00:01][D][esp-idf:000][uart_task]: V (4810) command_lib: Token: {{{}}}",
    ),
    "pyatcommand's, with its line ends": (
        "".join(
            f"DEBUG:pyatcommand.client:Sending command (timeout 0.3): {text}<cr>\n"
            if side is Side.SENT
            else f"DEBUG:pyatcommand.client:Response to AT+CGMR: <cr><lf>{text}<cr><lf>\n"
            for side, text in SESSION
        )
    ),
    "what a program does": log_of("Sending command: {}", "{}"),
    "what a program does, without a sign": log_of("Sending {}", "{}"),
    "what a program does, in Italian": log_of("Risposta ricevuta: {}", "{}"),
    "seconds since the start": log_of("+1.529s > {}", "+1.540s < {}"),
}
BYTES = {name: text.encode() for name, text in MARKED.items()}
BYTES |= {
    "UTF-16 LE": b"\xff\xfe" + MARKED["CR LF"].encode("utf-16-le"),
    "UTF-16 BE": b"\xfe\xff" + MARKED["TX: / RX:"].encode("utf-16-be"),
    "UTF-16 without its mark": MARKED["bare"].encode("utf-16-le"),
    "NULs of a line that broke": b"\0\0" + MARKED["CR LF"].replace("OK", "\0OK").encode(),
    "UTF-8 with its mark": b"\xef\xbb\xbf" + MARKED["bare"].encode(),
    "a transcript": ("# transcript: 1\n# device: nRF9160-SICA\n" + log_of("> {}", "< {}")).encode(),
    "a transcript in pieces": (
        "# transcript: 1\n>| AT+C\n>| GMR\\r\n" + log_of("> {}", "< {}").partition("\n")[2]
    ).encode(),
}
