#!/usr/bin/env python3
"""Holds the Kubernetes manifests and the compose file to what the service promises.

    kubectl kustomize deploy/kubernetes | manifests.py     the same for deploy/examples/NAME
    helm template NAME deploy/helm/cognate | manifests.py
    docker-compose -f docker-compose.yml -f deploy/compose.keys.yml config | manifests.py --keyed

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


def is_setting(key):
    """Whether the service knows a setting of that name."""
    text = (DEPLOY.parent / "src" / "http" / "settings" / "list.rs").read_text(encoding="utf-8")
    return re.search(rf"^ +{key}: ", text, re.M) is not None


def kubernetes(documents):
    """What holds of the manifests, of each example made of them, and of the chart."""
    of = lambda kind: [document for document in documents if document["kind"] == kind]
    for kind in ("ConfigMap", "Deployment"):
        yield f"one {kind}", len(of(kind)) == 1
    deployment = of("Deployment")[0]["spec"]
    name = of("Deployment")[0]["metadata"]["name"]
    pod = deployment["template"]["spec"]
    container = pod["containers"][0]
    settings = of("ConfigMap")[0]["data"]
    selected = deployment["selector"]["matchLabels"]
    labels = deployment["template"]["metadata"]["labels"]
    services = {each["spec"]["ports"][0]["name"]: each for each in of("Service")}
    service = services["http"]
    variables = {variable["name"]: variable for variable in container.get("env", [])}
    # The last port is that of operators, or that of all.
    ports = [port["name"] for port in container["ports"]]

    # An empty selector would take in every pod of the namespace.
    yield "deployment selects ours", OURS.items() <= selected.items() <= labels.items()
    yield "a service for each port", list(services) == ports and len(services) == len(of("Service"))
    for each in services.values():
        yield "service selects ours", each["spec"]["selector"] == selected and len(each["spec"]["ports"]) == 1
    yield "operators are asked inside", services.get("admin", {"spec": {}})["spec"].get("type", "ClusterIP") == "ClusterIP"
    for budget in of("PodDisruptionBudget"):
        yield "budget selects ours", budget["spec"]["selector"] == {"matchLabels": selected}
    for policy in of("NetworkPolicy"):
        yield "policy selects ours", policy["spec"]["podSelector"] == {"matchLabels": selected}
        ways_out = policy["spec"]["egress"]
        yield "nothing goes out but what is wanted", ways_out == [] or "COGNATE_OTLP_ENDPOINT" in settings \
            or "COGNATE_POSTGRES" in variables
        yield "a name can be looked up where something goes out", ways_out == [] or any(
            port["port"] == 53 for way in ways_out for port in way.get("ports", []))
        yield "the database is reached", "COGNATE_POSTGRES" not in variables or len(ways_out) > 1
        asked_by_all = [port["port"] for port in policy["spec"]["ingress"][0]["ports"]]
        yield "clients reach their port alone", asked_by_all == ["http"]
        yield "both directions are ruled", set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    for scaler in of("HorizontalPodAutoscaler"):
        yield "the autoscaler scales it", scaler["spec"]["scaleTargetRef"] == {
            "apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        yield "replicas are the autoscaler's", "replicas" not in deployment
        yield "a budget leaves one", all(
            scaler["spec"]["minReplicas"] > budget["spec"]["maxUnavailable"] for budget in of("PodDisruptionBudget"))
    yield "replicas are somebody's", of("HorizontalPodAutoscaler") or deployment.get("replicas", 0) > 0
    for job in of("CronJob"):
        spec = job["spec"]["jobTemplate"]["spec"]["template"]
        asked = {each["name"]: each for each in spec["spec"]["containers"][0]["env"]}["URL"]["value"]
        port = services.get("admin", service)
        yield "the job gets no requests", not selected.items() <= spec["metadata"]["labels"].items()
        yield "it asks the port of operators", asked == (
            f"http://{port['metadata']['name']}:{port['spec']['ports'][0]['port']}/-/backup")
        yield "copies are on a claim of their own", len({
            volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"]
            if volume["name"] in ("data", "backups")}) == 2
    for test in of("Pod"):
        yield "tests get no requests", not selected.items() <= test["metadata"]["labels"].items()
    for monitor in of("ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"]
        yield "the monitor finds the service", wanted.items() <= service["metadata"]["labels"].items()
        yield "its job has our name", \
            service["metadata"]["labels"].get(monitor["spec"].get("jobLabel")) == "cognate"
        yield "metrics are scraped where they are", [end["port"] for end in monitor["spec"]["endpoints"]] == ports[-1:]
        yield "nothing is scraped twice", "prometheus.io/scrape" not in \
            deployment["template"]["metadata"].get("annotations", {})
    for ingress in of("Ingress"):
        paths = [path for rule in ingress["spec"]["rules"] for path in rule["http"]["paths"]]
        inside = ("/metrics", "/-/reload", "/-/backup")
        yield "one replica's matters stay inside", not any(
            own == path["path"] or path["pathType"] != "Exact" and own.startswith(path["path"])
            for path in paths for own in inside)
        yield "the ingress leads to the service", all(
            path["backend"]["service"] == {"name": service["metadata"]["name"],
                                           "port": {"name": service["spec"]["ports"][0]["name"]}} for path in paths)
    yield "settings are the generated ones", container["envFrom"] == [
        {"configMapRef": {"name": of("ConfigMap")[0]["metadata"]["name"]}}]
    ours = [key for key in [*settings, *variables] if key.startswith("COGNATE_")]
    yield "settings exist", all(is_setting(key.removeprefix("COGNATE_").lower()) for key in ours)
    yield "no secret stands in a ConfigMap", not any(re.search("://[^/@]*:[^/]*@", value) for value in settings.values())
    yield "the database is named by a secret", "valueFrom" in variables.get("COGNATE_POSTGRES", {"valueFrom": None})
    yield "no foreign COGNATE_ variables", pod["enableServiceLinks"] is False

    stop = int(settings.get("COGNATE_SHUTDOWN_DELAY_S", default_of("shutdown_delay_s"))) + \
        int(settings.get("COGNATE_SHUTDOWN_GRACE_S", default_of("shutdown_grace_s")))
    yield "a stop has its time", stop < pod["terminationGracePeriodSeconds"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        yield f"{probe} asks a route", container[probe]["httpGet"]["path"] in ROUTES
        port = ports[0] if probe == "livenessProbe" else ports[-1]
        yield f"{probe} asks the port", container[probe]["httpGet"]["port"] == port
    yield "life does not depend on readiness", "ready" not in container["livenessProbe"]["httpGet"]["path"]

    rights = pod["securityContext"]
    yield "not root", rights["runAsNonRoot"] is True and rights["runAsUser"] == 65532
    yield "seccomp", rights["seccompProfile"] == {"type": "RuntimeDefault"}
    for each in pod["containers"] + pod.get("initContainers", []):
        own = each["securityContext"]
        yield "no rights", own["capabilities"] == {"drop": ["ALL"]} and own["allowPrivilegeEscalation"] is False
        yield "root file system read-only", own["readOnlyRootFilesystem"] is True
    yield "no token", pod["automountServiceAccountToken"] is False
    yield "limits", {"cpu", "memory"} <= set(container["resources"]["limits"]) \
        and {"cpu", "memory"} <= set(container["resources"]["requests"])
    mounts = container.get("volumeMounts", [])
    spool = {"name": "spool", "mountPath": "/tmp"}
    data = {"name": "data", "mountPath": settings.get("COGNATE_DATA")}
    copies = {"name": "backups", "mountPath": settings.get("COGNATE_BACKUPS")}
    yield "only /tmp, the data and their copies are written", all(
        m in (spool, data, copies) or m.get("readOnly") for m in mounts)
    yield "all mounts have volumes", {mount["name"] for mount in mounts} == {
        volume["name"] for volume in pod.get("volumes", [])}
    places = {mount["mountPath"] for mount in mounts}
    if "COGNATE_DATA" in settings:
        yield "data are mounted where they are kept", data in mounts
        yield "one process has the data", deployment["replicas"] == 1 and deployment["strategy"] == {"type": "Recreate"}
        yield "nobody scales what keeps data", not of("HorizontalPodAutoscaler")
        yield "the data are on a claim", "persistentVolumeClaim" in next(
            volume for volume in pod["volumes"] if volume["name"] == "data")
    memory = re.fullmatch(r"(\d+)([MG])i", container["resources"]["limits"]["memory"])
    limit = int(memory[1]) << {"M": 20, "G": 30}[memory[2]]
    bytes_kept = int(settings.get("COGNATE_COLLECTION_BYTES", 1 << 30))
    yield "collections fit into the memory", bytes_kept < limit
    if "COGNATE_KEYS_FILE" in settings:
        yield "keys are mounted where they are read", str(Path(settings["COGNATE_KEYS_FILE"]).parent) in places
    else:
        yield "without keys only where that is said", settings["COGNATE_ALLOW_NO_AUTH"] == "true"
    for model in filter(None, settings.get("COGNATE_MODEL", "").split(",")):
        yield "models are mounted where they are read", str(Path(model.split("=")[1]).parent) in places


def compose():
    services = yaml.safe_load((DEPLOY.parent / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    for name, service in services.items():
        yield f"{name}: no new rights", service["security_opt"] == ["no-new-privileges:true"]
        # Its image begins as root, gives its volume to its own user and writes beside it; it is asked by ours alone.
        if name == "postgres":
            yield f"{name}: publishes no port", "ports" not in service
        else:
            yield f"{name}: read-only", service["read_only"] is True
            yield f"{name}: no rights", service["cap_drop"] == ["ALL"]
        yield f"{name}: memory without swap", service["mem_limit"] == service["memswap_limit"]
        # What ends when its work is done is not to begin it again.
        yield f"{name}: comes back", service["restart"] == ("on-failure" if name == "tables" else "unless-stopped")
        for port in service.get("ports", []):
            yield f"{name}: on loopback", re.fullmatch(r"\$\{\w+:-127\.0\.0\.1:\d+(-\d+)?\}:\d+", port) is not None
    stop = default_of("shutdown_delay_s") + default_of("shutdown_grace_s")
    for name in ("cognate", "replica", "shared"):
        service = services[name]
        yield f"{name}: a stop has its time", stop < seconds(service["stop_grace_period"])
        yield f"{name}: files for all connections", service["ulimits"]["nofile"] >= default_of("max_connections") + 64
        yield f"{name}: models are a directory", "./models:/own:ro" in service["volumes"]
        # One process has the folder of collections at a time, and replicas are many.
        keeps = name == "cognate"
        yield f"{name}: data of one process", ("data:/data" in service["volumes"]) == keeps \
            and ("COGNATE_DATA" in service["environment"]) == keeps
        yield f"{name}: collections fit into the memory", int(
            service["environment"]["COGNATE_COLLECTION_BYTES"]) <= 256 << 20 and service["mem_limit"] == "512m"
    haproxy = (DEPLOY / "haproxy" / "haproxy.cfg").read_text(encoding="utf-8")
    checks = re.search(r"inter (\d+)s .* fall (\d+)", haproxy)
    # Two rounds of checks and the time-out of the last one.
    yield "haproxy sees a stop in time", int(checks[1]) * int(checks[2]) <= default_of("shutdown_delay_s")
    # HAProxy sends again what a closing connection swallowed, but only what it holds whole.
    yield "haproxy can send again", all(part in haproxy for part in (
        "retry-on conn-failure empty-response", "option redispatch 1", "retries 1\n", "wait-for-body"))
    alerts = (DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
    yield "rules ask for no job's name", 'job="' not in alerts


def keyed(services):
    """What holds of the compose file with keys, as compose reads both files together."""
    ours = {name: service for name, service in services.items() if service["image"] == "cognate"}
    yield "all of ours are there", {"cognate", "replica", "shared", "tables"} <= set(ours)
    for name, service in services.items():
        environment = service.get("environment") or {}
        # Whether or not it publishes a port: others in its network reach it.
        yield f"{name}: nobody without a key", str(environment.get("COGNATE_ALLOW_NO_AUTH", "false")) == "false"
    for name, service in ours.items():
        settings = service["environment"]
        folder = str(Path(settings.get("COGNATE_KEYS_FILE", "/none")).parent)
        # Compose v2 writes mounts in full, docker-compose as they are in the file.
        targets = [each["target"] if isinstance(each, dict) else each.split(":")[1] for each in service["volumes"]]
        yield f"{name}: keys are a directory, where they are read", folder in targets
        yield f"{name}: a key has its share", settings["COGNATE_CLIENT_SHARE"] == str(default_of("client_share"))


def main():
    documents = [document for document in yaml.safe_load_all(sys.stdin) if document]
    if sys.argv[1:] == ["--keyed"]:
        results = list(keyed(documents[0]["services"]))
    else:
        results = list(kubernetes(documents)) + list(compose())
    broken = [what for what, holds in results if not holds]
    for what in broken:
        print(f"does not hold: {what}", file=sys.stderr)
    print(f"{len(results) - len(broken)} of {len(results)} hold")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
