"""Countries: the codes that are understood, and what somebody meant who wrote a name instead."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache

from gpuwise.errors import Message, UnknownName

_COUNTRIES = """
AD Andorra; AE United Arab Emirates; AF Afghanistan; AG Antigua and Barbuda; AI Anguilla; AL Albania; AM Armenia;
AO Angola; AQ Antarctica; AR Argentina; AS American Samoa; AT Austria; AU Australia; AW Aruba; AX Åland Islands;
AZ Azerbaijan; BA Bosnia and Herzegovina; BB Barbados; BD Bangladesh; BE Belgium; BF Burkina Faso; BG Bulgaria;
BH Bahrain; BI Burundi; BJ Benin; BL St. Barthélemy; BM Bermuda; BN Brunei; BO Bolivia; BQ Caribbean Netherlands;
BR Brazil; BS Bahamas; BT Bhutan; BV Bouvet Island; BW Botswana; BY Belarus; BZ Belize; CA Canada; CC Cocos Islands;
CD Congo (Kinshasa); CF Central African Republic; CG Congo (Brazzaville); CH Switzerland; CI Ivory Coast;
CK Cook Islands; CL Chile; CM Cameroon; CN China; CO Colombia; CR Costa Rica; CU Cuba; CV Cape Verde; CW Curaçao;
CX Christmas Island; CY Cyprus; CZ Czechia; DE Germany; DJ Djibouti; DK Denmark; DM Dominica; DO Dominican Republic;
DZ Algeria; EC Ecuador; EE Estonia; EG Egypt; EH Western Sahara; ER Eritrea; ES Spain; ET Ethiopia; FI Finland;
FJ Fiji; FK Falkland Islands; FM Micronesia; FO Faroe Islands; FR France; GA Gabon; GB United Kingdom; GD Grenada;
GE Georgia; GF French Guiana; GG Guernsey; GH Ghana; GI Gibraltar; GL Greenland; GM Gambia; GN Guinea;
GP Guadeloupe; GQ Equatorial Guinea; GR Greece; GS South Georgia; GT Guatemala; GU Guam; GW Guinea-Bissau;
GY Guyana; HK Hong Kong; HM Heard Island; HN Honduras; HR Croatia; HT Haiti; HU Hungary; ID Indonesia; IE Ireland;
IL Israel; IM Isle of Man; IN India; IO British Indian Ocean Territory; IQ Iraq; IR Iran; IS Iceland; IT Italy;
JE Jersey; JM Jamaica; JO Jordan; JP Japan; KE Kenya; KG Kyrgyzstan; KH Cambodia; KI Kiribati; KM Comoros;
KN St. Kitts and Nevis; KP North Korea; KR South Korea; KW Kuwait; KY Cayman Islands; KZ Kazakhstan; LA Laos;
LB Lebanon; LC St. Lucia; LI Liechtenstein; LK Sri Lanka; LR Liberia; LS Lesotho; LT Lithuania; LU Luxembourg;
LV Latvia; LY Libya; MA Morocco; MC Monaco; MD Moldova; ME Montenegro; MF St. Martin; MG Madagascar;
MH Marshall Islands; MK North Macedonia; ML Mali; MM Myanmar; MN Mongolia; MO Macao; MP Northern Mariana Islands;
MQ Martinique; MR Mauritania; MS Montserrat; MT Malta; MU Mauritius; MV Maldives; MW Malawi; MX Mexico; MY Malaysia;
MZ Mozambique; NA Namibia; NC New Caledonia; NE Niger; NF Norfolk Island; NG Nigeria; NI Nicaragua; NL Netherlands;
NO Norway; NP Nepal; NR Nauru; NU Niue; NZ New Zealand; OM Oman; PA Panama; PE Peru; PF French Polynesia;
PG Papua New Guinea; PH Philippines; PK Pakistan; PL Poland; PM St. Pierre and Miquelon; PN Pitcairn Islands;
PR Puerto Rico; PS Palestinian Territories; PT Portugal; PW Palau; PY Paraguay; QA Qatar; RE Réunion; RO Romania;
RS Serbia; RU Russia; RW Rwanda; SA Saudi Arabia; SB Solomon Islands; SC Seychelles; SD Sudan; SE Sweden;
SG Singapore; SH St. Helena; SI Slovenia; SJ Svalbard and Jan Mayen; SK Slovakia; SL Sierra Leone; SM San Marino;
SN Senegal; SO Somalia; SR Suriname; SS South Sudan; ST São Tomé and Príncipe; SV El Salvador; SX Sint Maarten;
SY Syria; SZ Eswatini; TC Turks and Caicos Islands; TD Chad; TF French Southern Territories; TG Togo; TH Thailand;
TJ Tajikistan; TK Tokelau; TL Timor-Leste; TM Turkmenistan; TN Tunisia; TO Tonga; TR Turkey; TT Trinidad and Tobago;
TV Tuvalu; TW Taiwan; TZ Tanzania; UA Ukraine; UG Uganda; UM U.S. Outlying Islands; US United States; UY Uruguay;
UZ Uzbekistan; VA Vatican City; VC St. Vincent and Grenadines; VE Venezuela; VG British Virgin Islands;
VI U.S. Virgin Islands; VN Vietnam; VU Vanuatu; WF Wallis and Futuna; WS Samoa; YE Yemen; YT Mayotte;
ZA South Africa; ZM Zambia; ZW Zimbabwe
"""
"""ISO 3166-1 alpha-2, with short English names."""
_OTHERWISE = {
    "uk": "GB", "great britain": "GB", "england": "GB", "scotland": "GB", "wales": "GB", "usa": "US", "america": "US",
    "d": "DE", "deutschland": "DE", "f": "FR", "i": "IT", "e": "ES", "a": "AT", "s": "SE", "n": "NO", "j": "JP",
    "holland": "NL", "the netherlands": "NL", "suisse": "CH", "schweiz": "CH", "korea": "KR", "czech republic": "CZ",
    "russian federation": "RU", "uae": "AE", "prc": "CN", "burma": "MM", "eire": "IE", "turkiye": "TR", "türkiye": "TR",
    "europe": "EU", "european union": "EU",
}  # fmt: skip
"""What people write who mean a country and do not know its code."""


@cache
def countries() -> Mapping[str, str]:
    """Code -> name. "EU" is among them: providers that say no more than that."""
    entries = (entry.split(maxsplit=1) for entry in _COUNTRIES.replace("\n", " ").split(";"))
    return {code: name.strip() for code, name in entries} | {"EU": "European Union"}


def country(text: str) -> str:
    """The code in capitals: ISO 3166-1 alpha-2, or EU. UnknownName with the nearest for anything else."""
    code = text.strip().upper()
    if code in countries():
        return code
    near = _nearest(text.strip().casefold())
    hint = Message("Write two letters (ISO 3166-1), such as DE, or EU.")
    if near:
        hint = Message("Did you mean {code} ({name})?", code=near, name=countries()[near])
    raise UnknownName(
        Message('"{text}" is not a country code of two letters (ISO 3166-1).', text=text.strip()),
        hint,
        (near,) if near else (),
    )


def _nearest(text: str) -> str | None:
    """The country that somebody means by a name, or by a code of another kind."""
    names = {name.casefold(): code for code, name in countries().items()} | _OTHERWISE
    if text in names:
        return names[text]
    near = get_close_matches(text, names, n=1, cutoff=0.7)
    return names[near[0]] if near and len(text) > 3 else None
