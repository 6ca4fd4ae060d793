#!/usr/bin/env python3
"""Holds every query of the alert rules and the dashboard against what the service really says.

    queries.py SOURCE                  SOURCE: a file of metrics text, or the URL of a /metrics
    queries.py --prometheus URL        asks a running Prometheus each query
    queries.py --expressions           prints the queries, one a line, variables filled in

With a SOURCE each metric must be there by name, and each label that a query selects or groups by
must be one that the metric carries. Exits 1 when one is not. Needs nothing but Python 3.8.
"""

import json
import re
import sys
import urllib.parse
import urllib.request
from pathlib import Path

DEPLOY = Path(__file__).resolve().parent.parent
RULES = DEPLOY / "prometheus" / "alerts.yml"
DASHBOARD = DEPLOY / "grafana" / "dashboards" / "cognate.json"

# What only replicas serve.
OF_REPLICAS = "cognate_replica_"
# What Prometheus makes itself, and the labels it adds to every series it scrapes.
FROM_PROMETHEUS = {"up", "ALERTS"}
ADDED_LABELS = {"job", "instance", "le"}
WORDS = {"and", "or", "unless", "bool", "by", "without", "on", "ignoring", "offset", "inf", "nan"}


def rule_queries():
    """(alert, expression) of each rule. Reads the two ways of writing `expr` that the file uses."""
    lines = RULES.read_text(encoding="utf-8").splitlines()
    alert, found, number = None, [], 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if match := re.match(r"\s*- alert: (\S+)", line):
            alert = match[1]
        elif match := re.match(r"(\s*)expr: (.*)", line):
            indent, text = len(match[1]), match[2]
            if text == ">-":
                parts = []
                while number < len(lines) and len(lines[number]) - len(lines[number].lstrip()) > indent:
                    parts.append(lines[number].strip())
                    number += 1
                text = " ".join(parts)
            found.append((alert, text))
    return found


def dashboard_queries():
    """(panel, expression) of each panel, and of the annotations and variables."""
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    found = [(panel["title"], target["expr"])
             for panel in board["panels"] for target in panel.get("targets", [])]
    found += [(note["name"], note["expr"]) for note in board["annotations"]["list"]]
    for variable in board["templating"]["list"]:
        match = re.fullmatch(r"label_values\((\w+), *(\w+)\)", variable["query"]["query"])
        found.append((variable["name"], f"count by ({match[2]}) ({match[1]})"))
    return found


def filled(expression):
    """The expression with Grafana's variables replaced as Grafana would."""
    return expression.replace("$__rate_interval", "1m").replace("$instance", ".*")


def read_expression(expression):
    """{metric: labels it is selected by}, and the labels that are grouped by."""
    text = re.sub(r'"(\\.|[^"\\])*"', '""', filled(expression))
    metrics, grouped = {}, set()

    def selector(match):
        labels = set(re.findall(r'(\w+)\s*(?:=~|!~|!=|=)', match[2]))
        metrics.setdefault(match[1], set()).update(labels)
        return " "

    def grouping(match):
        grouped.update(re.findall(r"\w+", match[1]))
        return " "

    text = re.sub(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", grouping, text)
    text = re.sub(r"([A-Za-z_:][\w:]*)\s*\{([^}]*)\}", selector, text)
    text = re.sub(r"\[[^\]]*\]", " ", text)
    for match in re.finditer(r"(?<![\w.])([A-Za-z_:][\w:]*)\b(?!\s*\()", text):
        if match[1].lower() not in WORDS:
            metrics.setdefault(match[1], set())
    return metrics, grouped


def read_metrics(text):
    """{sample name: labels seen on it} of Prometheus text. A declared metric counts without samples."""
    seen = {}
    for line in text.splitlines():
        if match := re.match(r"# TYPE (\S+) (\S+)", line):
            names = [match[1]]
            if match[2] == "histogram":
                names = [match[1] + end for end in ("_bucket", "_sum", "_count")]
            for name in names:
                seen.setdefault(name, set())
        elif match := re.match(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})? \S+", line):
            seen.setdefault(match[1], set()).update(re.findall(r'(\w+)="', match[2] or ""))
    return seen


def check_source(source, queries):
    """What is wrong with the queries, as sentences."""
    if source.startswith(("http://", "https://")):
        with urllib.request.urlopen(source, timeout=5) as answer:
            text = answer.read().decode()
    else:
        text = Path(source).read_text(encoding="utf-8")
    seen, wrong, used = read_metrics(text), [], set()
    for place, expression in queries:
        metrics, grouped = read_expression(expression)
        if not metrics:
            wrong.append(f"{place}: no metric in {expression}")
        carried = set(ADDED_LABELS)
        for metric, labels in metrics.items():
            used.add(metric)
            if metric in FROM_PROMETHEUS:
                carried |= {"alertname", "alertstate"}
                continue
            if metric not in seen and metric.startswith(OF_REPLICAS):
                continue
            if metric not in seen:
                wrong.append(f"{place}: the service has no metric {metric}")
                continue
            carried |= seen[metric]
            for label in sorted(labels - ADDED_LABELS - seen[metric]):
                # A family without a sample yet shows no labels; only its name can be held to.
                if seen[metric]:
                    wrong.append(f"{place}: {metric} has no label {label}")
        if all(seen.get(metric) for metric in metrics if metric not in FROM_PROMETHEUS):
            wrong += [f"{place}: no metric of it has a label {label}" for label in sorted(grouped - carried)]
    served = {re.sub(r"_(bucket|sum|count)$", "", name) for name in seen if name.startswith("cognate_")}
    looked_at = {re.sub(r"_(bucket|sum|count)$", "", name) for name in used}
    if unused := sorted(served - looked_at):
        print(f"served, and looked at by no query: {', '.join(unused)}")
    print(f"{len(queries)} queries, {len(used)} metrics, against {len(seen)} names that are served")
    return wrong


def check_prometheus(url, queries):
    """Asks each query; an error is wrong, an empty answer is counted."""
    wrong, empty, alerts = [], [], {alert for alert, _ in rule_queries()}
    for place, expression in queries:
        body = urllib.parse.urlencode({"query": filled(expression)}).encode()
        try:
            with urllib.request.urlopen(f"{url.rstrip('/')}/api/v1/query", body, timeout=10) as answer:
                result = json.load(answer)["data"]["result"]
        except OSError as error:
            wrong.append(f"{place}: {error}")
            continue
        if not result:
            empty.append(place)
    quiet = [place for place in empty if place in alerts]
    panels = [place for place in empty if place not in alerts]
    print(f"{len(queries)} queries, {len(queries) - len(empty)} with an answer, "
          f"{len(quiet)} alerts silent, empty panels: {', '.join(panels) or 'none'}")
    return wrong


def main(arguments):
    queries = rule_queries() + dashboard_queries()
    alerts = RULES.read_text(encoding="utf-8").count("- alert: ")
    if len(rule_queries()) != alerts:
        return [f"{alerts} alerts, {len(rule_queries())} of them understood"]
    if arguments == ["--expressions"]:
        print("\n".join(filled(expression) for _, expression in queries))
        return []
    if len(arguments) == 2 and arguments[0] == "--prometheus":
        return check_prometheus(arguments[1], queries)
    if len(arguments) == 1 and not arguments[0].startswith("-"):
        return check_source(arguments[0], queries)
    return [__doc__]


if __name__ == "__main__":
    faults = main(sys.argv[1:])
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)
