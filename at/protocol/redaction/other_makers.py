"""The secret parameters of modems of other makers, of which `modem import` reads logs, too. Pure.

Sources: the manuals of Quectel, SIMCom, u-blox, Sierra, Telit, Cinterion, Sequans, Huawei,
Qualcomm, ZTE, Fibocom, Neoway, Ericsson, Icera and TI; Espressif's ESP-AT (+MQTT..., +BT...).
"""

from collections.abc import Mapping

from at.protocol.redaction.rules import Rule, all_but_numbers, everything, places, setting

CONTEXT_LOGIN = places(4, {2: "user", 3: "password"})  # some makers swap the two

OF_OTHER_MAKERS: Mapping[str, Rule] = {
    **dict.fromkeys(
        ("#PDPAUTH", "+CGSOCKAUTH", "+XGAUTH", "+MGAUTH", "^SGAUTH", "+WPPP"), CONTEXT_LOGIN
    ),
    **dict.fromkeys(
        ("+FTPUN", "+CFTPUN", "+QFTPUSER", "#USERID", "#EUSER"), places(1, {0: "user"})
    ),
    **dict.fromkeys(
        ("+FTPPW", "+CFTPPW", "+QFTPPASS", "#PASSW", "#EPASSW"), places(1, {0: "password"})
    ),
    **dict.fromkeys(("+UAUTHREQ", "$QCPDPP"), places(4, {2: "password", 3: "user"})),
    **dict.fromkeys(("+SMTPAUTH", "+CSMTPSAUTH"), places(3, {1: "user", 2: "password"})),
    **dict.fromkeys(
        ("#HTTPCFG", "+SQNHTTPCFG"), places(12, {4: "user", 5: "password"}, texts=(1,))
    ),
    "+QICSGP": places(6, {3: "user", 4: "password"}, texts=(2,)),
    "+QMTCONN": places(4, {2: "user", 3: "password"}, texts=(1,)),
    "+CSTT": places(3, {1: "user", 2: "password"}, texts=(0,)),
    "+CMQTTCONNECT": places(6, {4: "user", 5: "password"}, texts=(1,)),
    "+CNCFG": places(6, {3: "user", 4: "password"}, texts=(2,)),
    "^AUTHDATA": places(5, {3: "password", 4: "user"}, texts=(2,)),
    "#SGACT": places(4, {2: "user", 3: "password"}),
    "#FTPOPEN": places(4, {1: "user", 2: "password"}, texts=(0,)),
    "#MQCONN": places(6, {2: "user", 3: "password"}, texts=(1,)),
    "+SQNSMQTTCFG": places(5, {2: "user", 3: "password"}, texts=(1,)),
    "+CFTPSLOGIN": places(5, {2: "user", 3: "password"}, texts=(0,)),
    "+USECMNG": places(5, {4: "password"}, texts=(2, 3)),
    "+KCNXCFG": places(9, dict.fromkeys(range(3, 9), "password"), texts=(1, 2)),
    "+QIREGAPP": places(4, {1: "user", 2: "password"}, texts=(0,)),
    "+ZGPCOAUTH": places(4, {1: "user", 2: "password"}),
    "%IPDPCFG": places(5, {3: "user", 4: "password"}),
    "*EIAAUW": places(6, {2: "user", 3: "password"}),
    "%CGPCO": all_but_numbers("password"),  # with the user in one text
    "#TCPATRUNAUTH": all_but_numbers("password"),
    "+KMQTTCFG": places(16, {12: "user", 13: "password"}, texts=(1, 4, 8, 9, 15)),
    "+MQTTUSERCFG": places(8, {3: "user", 4: "password"}, texts=(2, 7)),
    "+MQTTUSERNAME": places(2, {1: "user"}),
    "+MQTTPASSWORD": places(2, {1: "password"}),
    "+QSETPSK": places(2, {0: "psk-identity", 1: "key"}),
    "^SLCK": places(4, {2: "pin"}, texts=(0,)),
    "^SPWD": places(3, {1: "pin", 2: "pin"}, texts=(0,)),
    "^CARDLOCK": places(3, {0: "pin"}),
    "#DWCFG": places(9, {2: "value"}, texts=(0,)),
    # What is set stands before its value: a login, or an address and the like.
    **dict.fromkeys(
        (
            *("+QFTPCFG", "+QLBSCFG", "+QHTTPCFG", "+QMTCFG", "+QSMTPCFG", "+QLWCFG", "+QSSLCFG"),
            *("+QIOTCFG", "+CSSLCFG", "+SMCONF", "+SHCONF", "+HTTPPARA", "+USMTP", "%MQTTCFG"),
            "%CERTCFG",
        ),
        setting(),
    ),
    **dict.fromkeys(("^SICS", "^SISS"), setting(1)),
    **dict.fromkeys(("+SHAHEAD", "+SHPARA"), places(2, {1: "value"}, texts=(0,))),
    **dict.fromkeys(("+UMQTT", "+UMQTTSN"), places(5, dict.fromkeys(range(1, 5), "value"))),
    "+SAPBR": setting(2),
    "+UPSD": places(3, {2: "value"}),
    "+UHTTP": places(4, {2: "value", 3: "value"}),
    "+UFTP": places(3, {1: "value", 2: "value"}),
    "+USECPRF": places(4, {2: "value", 3: "value"}),
    "+UWSC": places(4, {2: "value", 3: "value"}),
    "+UWSSW": places(3, {1: "password"}),
    "%PDNSET": places(8, dict.fromkeys(range(3, 8), "value"), texts=(1, 2)),
    "+QLWCONFIG": places(12, {7: "psk-identity", 8: "key"}, texts=(1, 3, 5)),
    "+QSECSWT": all_but_numbers("key"),
    "+SQNSPCFG": places(14, {7: "key", 8: "psk-identity"}, texts=(2,)),
    "+CWSTARTSMART": all_but_numbers("password"),
    "+BTSECPARAM": places(3, {2: "pin"}),
    **dict.fromkeys(("+UBTUE", "+UBTUPE"), everything("pin")),
    "^SJOTAP": all_but_numbers("password"),  # secrets beside other texts, five in all
    **dict.fromkeys(
        ("!OPENLOCK", "!OPENCND", "!OPENMEP", "!ENTERCND", "!SETCND"), everything("password")
    ),
}
"""Name of a command -> the rule of its set form."""
