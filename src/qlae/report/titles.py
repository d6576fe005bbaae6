"""Titles and numbers of digits of scores, for tables and figures."""

TITLES = {
    "infom": "InfoM",
    "infoe": "InfoE",
    "infoe_scalar": "InfoE, codes as numbers",
    "infoc": "InfoC",
    "d": "D",
    "i": "I",
    "c": "C",
    "psnr": "PSNR (dB)",
    "informative": "informative",
    "mig": "MIG",
    "sap": "SAP",
    "modularity": "modularity",
    "explicitness": "explicitness",
    "irs": "IRS",
    "mcc": "MCC",
}
DIGITS = {"psnr": 1}  # 2 for other scores
