"""A right answer to each command that a type reads, and a right line of each typed notice."""

from __future__ import annotations

_SHA = "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"
_UUID = "56495254-8f0b-c5c9-e65b-36ed0cf0f295"
_CELL = '"020247C1","00101","0901"'
_SATELLITE = '"00101","0901",14,256,"02024771",162,229366,20,23'
_JWT = (
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiIsImtpZCI6IjlkYzYzYWNhOWQ5Zjc1MDMzNTEwMTcyZmM1ZTYxZTQ1NGE5MD"
    "MxOTViYzY0ZWRiYzBmNGNhMTcyMWIyYWUwMzYifSAg.eyJpc3MiOiJuUkY5MTYxLjU2NDk1MjU0LThmMGItYzVjOS1lNjV"
    "iLTM2ZWQwY2YwZjI5NSIsImp0aSI6Im5SRjkxNjEuYzE2ZWUzZTQtZTBhZS1iNzI3LWMwMjYtZDhjYTA2YTllNmUzLmI1M"
    "zRmYzdlZDgwM2FhODcwYTk3Y2E3OWE4ODYxNDE0In0g.zYEHH4M-NtupzI8FQIOMX_bpQlqM_ER5fidssk5atzLR6nGTED"
    "_VYuZFZ1PVa5gC1H82n5AefD1-q_ltcvT48Q"
)
_KEY = (
    "MIIBDTCBsgIBADAvMS0wKwYDVQQDDCQ1NjQ5NTI1NC04ZjBiLWM1YzktZTY1Yi0zNmVkMGNmMGYyOTUwWTATBgcqhkjOPQI"
    "BBggqhkjOPQMBBwNCAAQ1vDWtAGetCfq7PEnC7A5dwFJWFn_YqPjC2CshoBq1YKin_qv9vm13F2XKu7k5xsZWtWxgSsMFTC"
    "IHMJQRbuI4oCEwHwYJKoZIhvcNAQkOMRIwEDAOBgNVHQ8BAf8EBAMCA-gwDAYIKoZIzj0EAwIFAANIADBFAiEA4cE_KOgpu"
    "L3zfQMepllbDldc58kY4MEjQSyHGQsjorcCIEAZfPdWFNucIXBSrf9EHdFQklXeltXJcHQMk4Hz5xXA.0oRDoQEmoQRBIV"
    "hL2dn3hQlQVklSVI8LxcnmWzbtDPDylUEJWCDBoLLp0gvJP3dGea2bqsolwZpZq3qT2p0s7goCU894-VBdkkwyXfqiWaWzA"
    "GWglKcxWEAHG8tY2mW8PBnVdt0gZfB21As6WqE6up74o_fjZpki1y9Ak5QSe4NhxtXV1R_klCNi37-rDG-rekMsb5AbsPtG"
)
_ATTESTATION = (
    "2dn3hQFQVklSVI8LxcnmWzbtDPDylQRQwW7j5OCutyfAJtjKBqnm41DsLrHZTNl1LbM-WsFN74mL.0oRDoQEmoQRBIfZYQG"
    "Je39mlIRQikN25B3iqcHPvhrLnUxZgluWeBUmT6830EXuXG2RiuL3WlGhucOifVdI4xNB0vpI2oqQ69R7hzUo"
)

ANSWERS: dict[str, tuple[str, ...]] = {
    "AT+CGMI": ("Nordic Semiconductor ASA",),
    "AT+CGMM": ("nRF9161-LACA",),
    "AT+CGMR": ("mfw_nrf91x1_2.0.4",),
    "AT%SHORTSWVER": ("%SHORTSWVER: nrf91x1_2.0.4",),
    "AT%HWVERSION": ("%HWVERSION: nRF9161 LACA A0A",),
    "AT%XMODEMUUID": ("%XMODEMUUID: c16ee3e4-e0ae-b727-c026-d8ca06a9e6e3",),
    "AT%DEVICEUUID": (f"%DEVICEUUID: {_UUID}",),
    "AT+CGSN": ("001018340000018",),
    "AT+CGSN=1": ('+CGSN: "001018340000018"',),
    "AT+CGSN=?": ("+CGSN: (0-3)",),
    "AT+CFUN?": ("+CFUN: 1",),
    "AT+CFUN=?": ("+CFUN: (0,1,4,20,21,30,31,40,41,44)",),
    "AT+CMEE?": ("+CMEE: 1",),
    "AT+CREG?": ('+CREG: 2,1,"0901","020247C1",7',),
    "AT+CGREG?": ('+CGREG: 2,1,"1433","00000143",3,"00"',),
    "AT+CEREG?": ('+CEREG: 5,1,"0901","020247C1",7,,,"11100000","11100000"',),
    "AT+C5GREG?": ('+C5GREG: 2,1,"001E00","0079D904",11,6,"ABCDEF"',),
    "AT+CEER": ('+CEER: "EMM 15"',),
    "AT+COPS?": ('+COPS: 0,2,"00101",7',),
    "AT+COPS=?": ('+COPS: (2,"","","00101",7),(1,"","","26201",9)',),
    "AT%COPS=?": ('%COPS: (2,"","","00101",7)',),
    "AT+CSCON?": ("+CSCON: 3,1,7,4",),
    "AT+CEMODE?": ("+CEMODE: 0",),
    "AT+CEMODE=?": ("+CEMODE: (0,2)",),
    "AT+CGATT?": ("+CGATT: 1",),
    "AT+CGDCONT?": ('+CGDCONT: 0,"IP","iot.example","10.160.33.51",0,0',),
    "AT+CGPADDR": ('+CGPADDR: 0,"10.160.33.51","fe80::1"',),
    "AT+CGPADDR=1": ('+CGPADDR: 1,"10.160.33.52"',),
    "AT+CGAUTH?": ('+CGAUTH: 0,1,"user","password"',),
    "AT+CGACT?": ("+CGACT: 0,1",),
    "AT+CGCONTRDP": ('+CGCONTRDP: 0,,"iot.example","","","10.160.0.1","10.160.0.2",,,,,1500',),
    "AT+CGCONTRDP=1": ('+CGCONTRDP: 1,,"internet","","","10.0.0.1","10.0.0.2",,,,,1028',),
    "AT+CGEREP?": ("+CGEREP: 1,0",),
    "AT+CPSMS?": ('+CPSMS: 1,,,"00000110","00100001"',),
    "AT+CEDRXS?": ('+CEDRXS: 4,"0101"',),
    "AT+CEDRXRDP": ('+CEDRXRDP: 4,"1000","0101","1011"',),
    "AT+CESQ": ("+CESQ: 99,99,255,255,5,21",),
    "AT+CSQ": ("+CSQ: 31,99",),
    "AT%XMONITOR": (
        f'%XMONITOR: 1,"E","E",{_SATELLITE},"","11100000","11100000","01001001",1,2,3,4',
    ),
    "AT%CONEVAL": ('%CONEVAL: 0,0,5,21,5,24,"020247C1","00101",247,6400,256,1,0,23,1,1,135',),
    "AT%XSYSTEMMODE?": ("%XSYSTEMMODE: 0,0,0,0,1",),
    "AT%XCBAND": ("%XCBAND: 256",),
    "AT%XCBAND=?": ("%XCBAND: (1,2,3,23,255,256)",),
    "AT%XBANDLOCK?": ('%XBANDLOCK: "10000001000000001100","23,255,256"',),
    "AT%XCONNSTAT?": ("%XCONNSTAT: 2,3,45,60,708,650",),
    "AT%XDATAPRFL?": ("%XDATAPRFL: 2",),
    "AT+CPIN?": ("+CPIN: SIM PIN",),
    'AT+CPINR="SIM PIN"': ('+CPINR: "SIM PIN",3',),
    "AT+CIMI": ("001010123456789",),
    "AT%XICCID": ("%XICCID: 8999900101834000001F",),
    "AT%XSIM?": ("%XSIM: 0,9",),
    "AT+CRSM=176,28539,0,0,12": ('+CRSM: 144,0,"62F210FFFFFFFFFFFFFFFFFF"',),
    "AT%XVBAT": ("%XVBAT: 5054",),
    "AT%XTEMP?": ("%XTEMP: -24",),
    "AT%XVBATLOWLVL?": ("%XVBATLOWLVL: 3500",),
    "AT+CCLK?": ('+CCLK: "26/02/02,04:08:35+04"',),
    'AT%JWT=0,0,"",""': (f'%JWT: "{_JWT}"',),
    "AT%JWT": (f'%JWT: "{_JWT}"',),
    "AT%KEYGEN=9,2,0": (f'%KEYGEN: "{_KEY}"',),
    "AT%ATTESTTOKEN": (f'%ATTESTTOKEN: "{_ATTESTATION}"',),
    'AT%ATTESTTOKEN="00112233445566778899aabbccddeeff"': (f'%ATTESTTOKEN: "{_ATTESTATION}"',),
    "AT%CMNG=1": (f'%CMNG: 7,0,"{_SHA}"', f'%CMNG: 16842753,1,"{_SHA}"'),
    "AT%CMNG=2,7,0": (f'%CMNG: 7,0,"{_SHA}","abc"',),
    "AT#XSMVER": ('#XSMVER: "v2.0.0","3.4.0","custom"',),
    "AT#XSLMVER": ('#XSLMVER: "3.1.1","3.1.1"',),
    "AT#XUUID": (f"#XUUID: {_UUID}",),
    "AT#XMODEMRESET": ("#XMODEMRESET: 0",),
    "AT#XFOTA=7": ("#XFOTA: 2621440,2621440",),
    "AT#XFOTA?": ("#XFOTA: 4,0",),
    "AT#XNRFCLOUD?": (f'#XNRFCLOUD: 1,0,16842753,"{_UUID}"',),
    "AT#XNRFCLOUD=?": ("#XNRFCLOUD: (0,1,2),<send_location>",),
    "AT#XNRFCLOUDFOTA=?": ("#XNRFCLOUDFOTA: (0,1,2,4,6)[,<project_key>]",),
    "AT#XNRFCLOUDFOTAAUTO?": ('#XNRFCLOUDFOTAAUTO: 1,"all",3600',),
    "AT#XNRFCLOUDOBSAUTO?": ('#XNRFCLOUDOBSAUTO: 1,600,"00112233445566778899aabbccddeeff"',),
    "AT#XNRFCLOUDOBSAUTO=?": ("#XNRFCLOUDOBSAUTO: (0,1),(60-86400),<project_key>",),
    "AT#XNRFCLOUDOBSUPLOAD=?": ("#XNRFCLOUDOBSUPLOAD: <project_key>",),
    "AT#XNRFCLOUDOBSFORWARD=?": ("#XNRFCLOUDOBSFORWARD: <base64_chunk>,<project_key>",),
    "AT#XNRFCLOUDOBSCOREDUMP?": ("#XNRFCLOUDOBSCOREDUMP: 1",),
    "AT#XNRFCLOUDOBSCOREDUMP=?": ("#XNRFCLOUDOBSCOREDUMP: (0,1)",),
    "AT#XNRFCLOUDOBSCRASH=?": ("#XNRFCLOUDOBSCRASH: <type>",),
    "AT#XNRFCLOUDOBSDEVINFO": (f'#XNRFCLOUDOBSDEVINFO: "{_UUID}","app","2.0.0+0","nrf9151dk"',),
    "AT#XNRFPROV=?": ("#XNRFPROV",),
    "AT#XLOG?": ("#XLOG: 2",),
    "AT#XLOG=?": ("#XLOG: (0,1,2)",),
    "AT#XTRACE?": ("#XTRACE: 1",),
    "AT#XTRACE=?": ("#XTRACE: (0,1)",),
    "AT#XBOOTINFO=0": ("#XBOOTINFO: 12",),
    "AT#XBOOTINFO=1": ("#XBOOTINFO: 1",),
    "AT#XBOOTINFO=?": ("#XBOOTINFO: (0,1)",),
    "AT+IPR?": ("+IPR: 115200",),
    "AT+IPR=?": ("+IPR: (),(115200,230400,460800,921600,1000000)",),
    "AT#XGNSS?": ("#XGNSS: 1,0",),
    "AT#XGPS?": ("#XGPS: 1,0",),
    "AT+CWLAP": (
        '+CWLAP:(3,"home",-61,"00:00:5e:00:53:01",6,-1,0,4,4,7,0)',
        '+CWLAP:(0,"",-80,"00:00:5e:00:53:02",11)',
    ),
    'AT+CWLAP="home"': ('+CWLAP:(3,"home",-61,"00:00:5e:00:53:01",6)',),
}
"""The lines before OK, by the command."""

NOTICES = (
    "#XDATAMODE: 0",
    "#XDFU: 1,2,0",
    "#XFOTA: 1,0,55",
    "#XGNSS: 1,4",
    '#XGNSSPOS: 63.424089,10.396382,21.500000,4.250000,0.000000,0.000000,"2026-02-02 03:24:07"',
    "#XGPS: 1,1",
    "#XMODEM: FAULT,0x1,0x2a3c",
    "#XMODEMRESET: 0",
    "#XNRFCLOUD: 1,0",
    "#XNRFCLOUDPOS: 0,2,63.42,10.39,40",
    "#XNRFCLOUDFOTA: 1,0,45",
    "#XNRFCLOUDFOTA: -1,-11",
    "#XNRFCLOUDOBSUPLOAD: 0,108",
    "#XNRFCLOUDOBSFORWARD: 0",
    "#XNRFPROV: -2",
    "%CESQ: 22,1,6,0",
    "%MDMEV: SEARCH STATUS 2",
    f"%NCELLMEAS: 0,{_CELL},96,6400,247,24,7,2256500,2300,264,15,2,2,2300,162,14,2,5,2256380",
    "%RAI: 1,2",
    "%XMODEMSLEEP: 1,36000",
    "%XPOFWARN: 30",
    "%XSIM: 0,9",
    "%XT3412: 1200000",
    "%XTEMP: 3,91",
    '%XTIME: "40","62202030228340","00"',
    "%XVBATLOWLVL: 3100",
    '+C5GREG: 1,"001E00","0079D904",11',
    '+CEDRXP: 4,"0101","0101","1011"',
    '+CEREG: 1,"0901","020247C1",14,,,"11100000","11100000"',
    "+CGEV: NW ACT 3, 2, 1",
    '+CGREG: 1,"1433","00000143",3,"00"',
    "+CNEC_EMM: 15",
    "+CNEC_ESM: 33,0",
    '+CREG: 1,"0901","020247C1",7',
    "+CSCON: 1,7,4",
)
"""One line of each name whose notices are typed."""
