"""The check digit that an IMEI (3GPP TS 23.003 annex B) and a card number end in."""


def luhn_digit(digits: str) -> str:
    """Return the check digit (ISO/IEC 7812-1, annex B) that belongs behind `digits`."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (2 - place % 2)
        total += doubled // 10 + doubled % 10
    return str(-total % 10)


def ends_in_luhn_digit(number: str) -> bool:
    """Return whether the last digit of a number is the check digit of the others."""
    return luhn_digit(number[:-1]) == number[-1]
