"""Airflow DAG: land the daemon's log every hour, derive the days that changed, compact at night.

Copy it into the folder of DAGs of an Airflow 3 (or 2.9 or later with the package
apache-airflow-providers-standard) whose workers have `rollcall-broker[pipeline]`. One run at a
time: the lake and the results have one writer.
"""

from datetime import UTC, datetime, timedelta

from airflow import DAG
from airflow.providers.standard.operators.bash import BashOperator

LOG, LAKE, RESULTS = "/var/lib/rollcall", "/data/lake", "/data/results"
SETTINGS = {
    "start_date": datetime(2026, 1, 1, tzinfo=UTC),
    "catchup": False,
    "max_active_runs": 1,
    "default_args": {"retries": 2, "retry_delay": timedelta(minutes=5)},
}

with DAG("rollcall_pipeline", schedule="@hourly", **SETTINGS):
    ingest = BashOperator(
        task_id="ingest",
        bash_command=f"rollcall pipeline run ingest --from {LOG} --to {LAKE}",
    )
    derive = BashOperator(
        task_id="derive",
        bash_command=(
            f"rollcall pipeline run all --incremental --from {LAKE} --to {RESULTS} "
            f"--report {RESULTS}/report.html --summary {RESULTS}/summary.json"
        ),
    )
    ingest >> derive

with DAG("rollcall_pipeline_lake", schedule="@daily", **SETTINGS):
    BashOperator(
        task_id="maintain",
        bash_command=(
            f"rollcall pipeline lake expire {LAKE} --before 90d && "
            f"rollcall pipeline lake compact {LAKE}"
        ),
    )
