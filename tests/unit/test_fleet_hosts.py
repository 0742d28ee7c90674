"""Which hosts are meant: node sets, groups, inventories, standard input."""

import io
from pathlib import Path

import pytest

from tui_fs.fleet.hosts import folded, hosts_of
from tui_fs.model.errors import BadInput

INI = """\
gate ansible_host=10.0.0.1 ansible_user="an admin"  # the gateway

[web]
web[01:03]
old ansible_host="10.0.0.9"
; a comment
# another

[db]
db[1:5:2]
old

[web:vars]
ansible_port=22

[prod:children]
web
db
"""
YAML = """\
all:
  hosts:
    gate: {ansible_host: 10.0.0.1}
  children:
    web:
      hosts:
        web[01:03]:
        old: {ansible_host: 10.0.0.9}
    db:
      hosts:
        db[1:5:2]:
        old:
    prod:
      children:
        web:
        db:
"""


@pytest.fixture(params=[("hosts.ini", INI), ("hosts.yml", YAML)], ids=["ini", "yaml"])
def inventory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the same inventory in both formats."""
    name, text = request.param
    assert isinstance(name, str)
    (tmp_path / name).write_text(text)
    return tmp_path / name


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("web1", ("web1",)),
        ("web[1-3],db", ("db", "web1", "web2", "web3")),
        ("web[1-3]!web2", ("web1", "web3")),
        ("web1,web1", ("web1",)),
        ("backup-2024-20261127", ("backup-2024-20261127",)),
        ("web[08-10].example.com", tuple(f"web{n:02}.example.com" for n in (8, 9, 10))),
    ],
)
def test_node_sets_name_each_host_once(text: str, hosts: tuple[str, ...]) -> None:
    assert tuple(sorted(hosts_of(text))) == hosts


@pytest.mark.parametrize(
    "text",
    [
        "-oProxyCommand=touch /tmp/x",
        "a,-oProxyCommand=x",
        "a b",
        "a;reboot",
        "$(reboot)",
        "`reboot`",
        "a\nb",
        "a\x1b[2J",
        "ä",
        "",
        "a!a",
        "@no-such-group",
        "web[1-",
        "web[1-100000000]",
        "web[1-9999][1-9999]",
        "%host",
        "user@host",
        "/no/such/inventory",
    ],
)
def test_what_is_no_set_of_hosts_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(BadInput) as error:
        hosts_of(text)
    assert error.value.sentence.isprintable()


def test_all_hosts_of_an_inventory(inventory: Path) -> None:
    # The address of a host counts in all of its groups: it is deleted from once
    expected = "10.0.0.[1,9],db[1,3,5],web[01-03]"
    assert folded(hosts_of(str(inventory))) == folded(hosts_of(expected))


@pytest.mark.parametrize(
    ("group", "hosts"),
    [("@web", "web[01-03],10.0.0.9"), ("@db", "db[1,3,5],10.0.0.9"), ("@prod!@db", "web[01-03]")],
)
def test_groups_of_an_inventory(inventory: Path, group: str, hosts: str) -> None:
    assert sorted(hosts_of(group, str(inventory))) == sorted(hosts_of(hosts))


def test_an_unknown_group_of_an_inventory_is_refused(inventory: Path) -> None:
    with pytest.raises(BadInput, match="@wbe"):
        hosts_of("@wbe", str(inventory))


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.yml", "- a\n", "file has something else than names"),
        ("a.yml", "all: {hosts: [a, b]}\n", "all has something else"),
        ("a.yml", "all: {hosts: {a: 5}}\n", "a has something else"),
        ("a.yml", "all: [\n", "while parsing"),
        ("a.yml", "all: {children: &x {b: {children: *x}}}\n", "recursion"),
        ("a.ini", '[web]\nweb1 ansible_host="10\n', "No closing quotation"),
        ("a.ini", "[web]\nweb[a:c]\n", "bad range"),
        ("a.ini", "[web]\n-oProxyCommand=x\n", "not the name of a host"),
        ("a.ini", "[web]\na ansible_host=-oProxyCommand=x\n", "not the name of a host"),
        ("a.ini", "[web]\n", "no host"),
        ("a.ini", "[web]\nweb[1:100000000]\n", "10,000 hosts"),
    ],
)
def test_a_bad_inventory_is_refused(tmp_path: Path, name: str, text: str, reason: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=reason):
        hosts_of(str(tmp_path / name))


def test_an_unreadable_inventory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes.ini").write_bytes(b"[web]\n\xff\n")
    for path, reason in (("bytes.ini", "utf-8"), (".", "Is a directory"), ("no", "No such file")):
        with pytest.raises(BadInput, match=reason):
            hosts_of("@web", str(tmp_path / path))


def test_standard_input_has_a_node_set_in_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("web[1-2]\n\n db1 \n"))
    assert sorted(hosts_of("-")) == ["db1", "web1", "web2"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    with pytest.raises(BadInput):
        hosts_of("-")
    monkeypatch.setattr("sys.stdin", io.StringIO("-oProxyCommand=x\n"))
    with pytest.raises(BadInput):
        hosts_of("-")
