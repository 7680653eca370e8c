"""Write results/production/realism.csv and apart.csv: python study/production/measure.py."""

import warnings
from pathlib import Path

import pandas as pd
from apart import told_apart
from realism import statistics_frame, within_quartiles

from logtriage.production.production_cases import production_case
from logtriage.real.cases import SOURCES, load_source

RESULTS = Path(__file__).resolve().parents[2] / "results" / "production"

warnings.filterwarnings("ignore")
real = [statistics_frame(load_source(one).cases).assign(source=one) for one in SOURCES]
simulated = statistics_frame(production_case("test", index) for index in range(500))
RESULTS.mkdir(parents=True, exist_ok=True)
table = within_quartiles(pd.concat(real), simulated)
table.round(4).to_csv(RESULTS / "realism.csv", index=False)
apart = told_apart()
apart.round(3).to_csv(RESULTS / "apart.csv", index=False)
print(table.round(3).to_string(), table["within"].sum(), apart, sep="\n")
