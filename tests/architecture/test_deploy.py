"""Deployment files: deploy/ is well-formed, and every name in it is known.

Each configuration that they hold is loaded as the daemon would load it, so that a key which is
renamed or refused one day is noticed here and not on a user's cluster.
"""

import configparser
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from cli.commands import cli
from config.keys import Config
from config.sources import load_config
from rollcall import __version__
from tests.architecture.tree import ROOT

DEPLOY = ROOT / "deploy"
SAMPLE = DEPLOY / "rollcall.toml"
DATA_DIR = Path("/var/lib/rollcall")
COMMAND = re.compile(
    r"(?:/opt/rollcall/bin/)?rollcall ((?:serve|config|completion|--\w)[^`#|)\n]*)"
)


def environment(pairs: dict[str, str]) -> Config:
    """What the daemon makes of the image's file and a container's environment."""
    config = load_config(environment={**pairs}, file=SAMPLE)
    # Containers publish the admin port to whom they want to.
    assert [text for text in config.warnings if "asks for no credentials" not in text] == []
    return config


@pytest.fixture(scope="module")
def compose() -> dict:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


@pytest.fixture(scope="module")
def kubernetes() -> list[dict]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


@pytest.fixture(scope="module")
def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=True)
    parser.optionxform = str
    parser.read_string((DEPLOY / "rollcall.service").read_text())
    return parser


def test_the_sample_file_is_taken_without_a_warning() -> None:
    config = environment({})

    assert config.data_dir == DATA_DIR
    assert [(e.host, e.port, e.advertised_host) for e in config.endpoints] == [
        ("", 9092, "localhost")
    ]
    assert config.admin_address == ("", 9180)


def test_compose_serves_containers_and_this_machine(compose: dict) -> None:
    service = compose["services"]["rollcall"]
    config = environment(service["environment"])

    inside, outside = config.endpoints
    assert (inside.advertised_host, inside.advertised_port) == ("rollcall", inside.port)
    published = dict(
        reversed(mapping.removeprefix("127.0.0.1:").split(":")) for mapping in service["ports"]
    )
    assert published[str(outside.port)] == str(outside.advertised_port)
    assert config.admin_address is not None
    assert str(config.admin_address[1]) in published
    assert service["volumes"] == [f"data:{config.data_dir}"]
    assert (DEPLOY / service["build"] / "Dockerfile").is_file()


def test_kubernetes_serves_pods_and_the_world_outside(kubernetes: list[dict]) -> None:
    headless, outside, stateful = kubernetes
    pod = stateful["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    values = {
        "POD": "rollcall-0",
        "NAMESPACE": "default",
        "HOST_IP": "192.0.2.1",
        **{entry["name"]: entry["value"] for entry in container["env"] if "value" in entry},
    }
    assert {e["name"] for e in container["env"]} == set(values)
    expanded = {
        name: re.sub(r"\$\((\w+)\)", lambda match: values[match[1]], value)
        for name, value in values.items()
    }
    config = environment(expanded)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}

    for_pods, for_world = config.endpoints
    assert for_pods.advertised_host == "rollcall-0.rollcall.default.svc"
    assert for_pods.port == for_pods.advertised_port == ports["kafka"]
    (door,) = outside["spec"]["ports"]
    assert door["targetPort"] == for_world.port == ports["outside"]
    assert door["nodePort"] == for_world.advertised_port
    assert config.admin_address == ("", ports["admin"])

    # The names that tie the three together.
    labels = pod["metadata"]["labels"]
    assert headless["spec"]["clusterIP"] == "None"
    assert stateful["spec"]["serviceName"] == headless["metadata"]["name"]
    for selector in (
        headless["spec"]["selector"],
        outside["spec"]["selector"],
        stateful["spec"]["selector"]["matchLabels"],
    ):
        assert selector == labels
    (claim,) = stateful["spec"]["volumeClaimTemplates"]
    assert container["volumeMounts"] == [
        {"name": claim["metadata"]["name"], "mountPath": str(config.data_dir)}
    ]
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "admin"}
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "admin"}


def test_all_files_name_the_image_that_the_dockerfile_says_how_to_build(
    compose: dict, kubernetes: list[dict]
) -> None:
    image = f"rollcall:{__version__}"
    (container,) = kubernetes[2]["spec"]["template"]["spec"]["containers"]

    assert container["image"] == compose["services"]["rollcall"]["image"] == image
    build = f"docker build -t {image} "
    assert build in (ROOT / "Dockerfile").read_text()
    assert build in (DEPLOY / "kubernetes.yaml").read_text()


def test_no_example_publishes_a_port_on_all_interfaces() -> None:
    published = re.findall(r"-p (\S+)", (ROOT / "Dockerfile").read_text())
    assert published
    assert all(mapping.startswith("127.0.0.1:") for mapping in published)


def test_the_image_and_the_pod_are_the_same_user(kubernetes: list[dict]) -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    context = kubernetes[2]["spec"]["template"]["spec"]["securityContext"]

    assert context["runAsNonRoot"] is True
    assert re.search(
        rf"^USER {context['runAsUser']}:{context['fsGroup']}$", dockerfile, re.MULTILINE
    )
    assert f"-o {context['runAsUser']} -g {context['fsGroup']} {DATA_DIR}" in dockerfile


def test_the_image_copies_what_is_there_and_listens_where_it_says() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    config = environment({})
    assert config.admin_address is not None

    assert f"COPY {SAMPLE.relative_to(ROOT)} /etc/rollcall/rollcall.toml" in dockerfile
    assert "ROLLCALL_CONFIG=/etc/rollcall/rollcall.toml" in dockerfile
    assert f"EXPOSE {config.endpoints[0].port} {config.admin_address[1]}" in dockerfile
    assert f"http://127.0.0.1:{config.admin_address[1]}/readyz" in dockerfile
    assert f"VOLUME {config.data_dir}" in dockerfile
    assert "STOPSIGNAL SIGTERM" in dockerfile
    assert "--require-hashes" in dockerfile


def test_the_unit_waits_for_the_ready_word_and_owns_the_data(
    unit: configparser.ConfigParser,
) -> None:
    service = unit["Service"]

    assert service["Type"] == "notify"
    assert Path("/var/lib", service["StateDirectory"]) == environment({}).data_dir
    assert service["RestartPreventExitStatus"] == "2"
    assert shlex.split(service["ExecStart"])[-1] == "/etc/rollcall/rollcall.toml"


@pytest.mark.parametrize(
    "path",
    [
        *("README.md", "Dockerfile", "Makefile", "docs/configuration.md"),
        *(str(path.relative_to(ROOT)) for path in sorted(DEPLOY.rglob("*")) if path.is_file()),
    ],
)
def test_every_command_that_is_written_down_exists(path: str) -> None:
    for words in COMMAND.findall((ROOT / path).read_text()):
        name, *arguments = shlex.split(words, comments=True) or [""]
        if name.startswith("--"):
            continue
        command = cli.get_command(click.Context(cli), name)
        assert command is not None, f"{path}: rollcall {words}"
        known = {
            option
            for parameter in command.params
            if isinstance(parameter, click.Option)
            for option in parameter.opts
        }
        given = {word.partition("=")[0] for word in arguments if word.startswith("--")}
        assert given <= known, f"{path}: rollcall {words}"


def test_the_monitoring_of_compose_finds_its_files_and_its_target(compose: dict) -> None:
    services = compose["services"]
    monitoring = {name: service for name, service in services.items() if name != "rollcall"}
    assert all(service["profiles"] == ["monitoring"] for service in monitoring.values())
    mounted: dict[str, str] = {}
    for service in monitoring.values():
        for mount in service["volumes"]:
            source, target, *_ = mount.split(":")
            if source.startswith("./"):
                assert (DEPLOY / source).is_file(), source
                mounted[target] = source
            else:
                assert source in compose["volumes"]
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text())
    (job,) = scraped["scrape_configs"]
    admin = environment(services["rollcall"]["environment"]).admin_address
    assert admin is not None
    assert job["static_configs"] == [{"targets": [f"rollcall:{admin[1]}"]}]
    assert set(scraped["rule_files"]) <= mounted.keys()
    # The alerts name the job.
    assert f'job="{job["job_name"]}"' in (DEPLOY / "prometheus" / "alerts.yaml").read_text()
    folder = yaml.safe_load((DEPLOY / "grafana" / "dashboards.yaml").read_text())
    (provider,) = folder["providers"]
    assert f"{provider['options']['path']}/rollcall.json" in mounted
