"""The option of the commands that write transcripts: whether they keep the device's identity."""

import click

keep_identity_option = click.option(
    "--keep-identity", is_flag=True, help="Keep IMEI, IMSI, ICCID, UUID and device ids as they are."
)
