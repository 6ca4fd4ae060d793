#!/usr/bin/env python3
"""Holds the Kubernetes manifests and the compose file to what the service promises.

    kubectl kustomize deploy/kubernetes | manifests.py

Schemas are another's work: `kubernetes-validate`, which check.sh runs where it is installed. Here is
what no schema knows: that selectors select our pods and only those, that a stop has the time it
needs, that nothing runs with rights it does not use. Needs PyYAML.
"""

import re
import sys
from pathlib import Path

import yaml

DEPLOY = Path(__file__).resolve().parent.parent
ROUTES = {"/livez", "/healthz", "/readyz", "/health", "/ready"}
OURS = {"app.kubernetes.io/name": "cognate"}


def default_of(key):
    """A default of the service, read where it is written."""
    text = (DEPLOY.parent / "src" / "http" / "settings" / "list.rs").read_text(encoding="utf-8")
    return int(re.search(rf"^ +{key}: \w+ = ([\d_]+),", text, re.M)[1].replace("_", ""))


def seconds(text):
    return int(re.fullmatch(r"(\d+)s", str(text))[1])


def kubernetes(documents):
    kinds = {document["kind"]: document for document in documents}
    yield "each kind once", len(kinds) == len(documents)
    yield "the kinds", set(kinds) == {"ConfigMap", "Deployment", "Service", "HorizontalPodAutoscaler",
                                      "PodDisruptionBudget", "NetworkPolicy"}
    deployment = kinds["Deployment"]["spec"]
    pod = deployment["template"]["spec"]
    container = pod["containers"][0]
    settings = kinds["ConfigMap"]["data"]

    yield "pods carry our label", OURS.items() <= deployment["template"]["metadata"]["labels"].items()
    # An empty selector would take in every pod of the namespace.
    yield "deployment selects ours", deployment["selector"]["matchLabels"] == OURS
    yield "service selects ours", kinds["Service"]["spec"]["selector"] == OURS
    yield "budget selects ours", kinds["PodDisruptionBudget"]["spec"]["selector"] == {"matchLabels": OURS}
    yield "policy selects ours", kinds["NetworkPolicy"]["spec"]["podSelector"] == {"matchLabels": OURS}
    yield "nothing goes out", kinds["NetworkPolicy"]["spec"]["egress"] == []
    yield "both directions are ruled", set(kinds["NetworkPolicy"]["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    yield "the autoscaler scales it", kinds["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"] == {
        "apiVersion": "apps/v1", "kind": "Deployment", "name": kinds["Deployment"]["metadata"]["name"]}
    yield "replicas are the autoscaler's", "replicas" not in deployment
    yield "a budget leaves one", kinds["HorizontalPodAutoscaler"]["spec"]["minReplicas"] > \
        kinds["PodDisruptionBudget"]["spec"]["maxUnavailable"]
    yield "settings are the generated ones", container["envFrom"] == [
        {"configMapRef": {"name": kinds["ConfigMap"]["metadata"]["name"]}}]
    yield "no foreign COGNATE_ variables", pod["enableServiceLinks"] is False

    stop = int(settings.get("COGNATE_SHUTDOWN_DELAY_S", default_of("shutdown_delay_s"))) + \
        int(settings.get("COGNATE_SHUTDOWN_GRACE_S", default_of("shutdown_grace_s")))
    yield "a stop has its time", stop < pod["terminationGracePeriodSeconds"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        yield f"{probe} asks a route", container[probe]["httpGet"]["path"] in ROUTES
        yield f"{probe} asks the port", container[probe]["httpGet"]["port"] == container["ports"][0]["name"]
    yield "life does not depend on readiness", "ready" not in container["livenessProbe"]["httpGet"]["path"]

    rights, own = pod["securityContext"], container["securityContext"]
    yield "not root", rights["runAsNonRoot"] is True and rights["runAsUser"] == 65532
    yield "seccomp", rights["seccompProfile"] == {"type": "RuntimeDefault"}
    yield "no rights", own["capabilities"] == {"drop": ["ALL"]} and own["allowPrivilegeEscalation"] is False
    yield "root file system read-only", own["readOnlyRootFilesystem"] is True
    yield "no token", pod["automountServiceAccountToken"] is False
    yield "limits", {"cpu", "memory"} <= set(container["resources"]["limits"]) \
        and {"cpu", "memory"} <= set(container["resources"]["requests"])
    keys = Path(settings["COGNATE_KEYS_FILE"])
    mount = container["volumeMounts"][0]
    yield "keys are mounted where they are read", str(keys.parent) == mount["mountPath"] and mount["readOnly"]


def compose():
    services = yaml.safe_load((DEPLOY.parent / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    for name, service in services.items():
        yield f"{name}: read-only", service["read_only"] is True
        yield f"{name}: no rights", service["cap_drop"] == ["ALL"] \
            and service["security_opt"] == ["no-new-privileges:true"]
        yield f"{name}: memory without swap", service["mem_limit"] == service["memswap_limit"]
        for port in service.get("ports", []):
            yield f"{name}: on loopback", re.fullmatch(r"\$\{\w+:-127\.0\.0\.1:\d+\}:\d+", port) is not None
    stop = default_of("shutdown_delay_s") + default_of("shutdown_grace_s")
    for name in ("cognate", "replica"):
        service = services[name]
        yield f"{name}: a stop has its time", stop < seconds(service["stop_grace_period"])
        yield f"{name}: files for all connections", service["ulimits"]["nofile"] >= default_of("max_connections") + 64
        yield f"{name}: models are a directory", service["volumes"] == ["./models:/models:ro"]
    haproxy = (DEPLOY / "haproxy" / "haproxy.cfg").read_text(encoding="utf-8")
    checks = re.search(r"inter (\d+)s .* fall (\d+)", haproxy)
    # Two rounds of checks and the time-out of the last one.
    yield "haproxy sees a stop in time", int(checks[1]) * int(checks[2]) <= default_of("shutdown_delay_s")
    # HAProxy sends again what a closing connection swallowed, but only what it holds whole.
    yield "haproxy can send again", all(part in haproxy for part in (
        "retry-on conn-failure empty-response", "option redispatch 1", "retries 1\n", "wait-for-body"))
    alerts = (DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
    cap = default_of("max_connections")
    yield "the alert knows the cap", f"cognate_connections > {cap * 8 // 10}" in alerts and f"at most {cap}" in alerts


def main():
    results = list(kubernetes(list(yaml.safe_load_all(sys.stdin)))) + list(compose())
    broken = [what for what, holds in results if not holds]
    for what in broken:
        print(f"does not hold: {what}", file=sys.stderr)
    print(f"{len(results) - len(broken)} of {len(results)} hold")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
