"""Which hosts are meant: node sets, groups, inventory files of Ansible, standard input."""

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tui_fs.model.errors import BadInput, Missing
from tui_fs.model.paths import displayable

STANDARD_INPUT = "-"
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
"""A name that ssh cannot take for an option, and that no shell changes."""

_YAML_ENDINGS = (".yml", ".yaml")
_INVENTORY_ENDINGS = (".ini", *_YAML_ENDINGS)
_RANGE = re.compile(r"\[([0-9]+):([0-9]+)(?::([0-9]+))?\]")
_ALL = "all"
_MAX_HOSTS = 10_000


def require_clustershell() -> None:
    """Raise Missing unless ClusterShell is installed."""
    try:
        import ClusterShell  # noqa: F401
    except ImportError as error:
        raise Missing(
            "Working on many hosts needs ClusterShell, which is not installed.",
            "Install it: pip install 'tui-fs[fleet]'",
        ) from error


def hosts_of(text: str, inventory: str | None = None) -> tuple[str, ...]:
    """Return the hosts that a user names, each once.

    Args:
        text: a node set (``web[1-8],db3``, with groups as ``@web``), an inventory file of Ansible
            (all of its hosts), or ``-`` for one node set on each line of standard input.
        inventory: a file of Ansible whose groups ``@NAME`` means, instead of ClusterShell's own.

    Raises:
        BadInput: no host is named, or one that is no host name.
        Missing: ClusterShell is not installed.
    """
    require_clustershell()
    from ClusterShell.NodeSet import NodeSet, NodeSetException
    from ClusterShell.NodeUtils import GroupResolverError, GroupSourceError

    if inventory is None and _is_inventory(text):
        inventory, text = text, "@*"
    elif os.sep in text:
        raise BadInput(f"There is no inventory file {displayable(text)}.")
    if text == STANDARD_INPUT:
        text = ",".join(line.strip() for line in sys.stdin if line.strip())
    if text.startswith("-"):
        raise BadInput(f"'{displayable(text)}' is no host: a name cannot begin with '-'.")
    try:
        resolver = None if inventory is None else _resolver_of(inventory)
        _check_ranges(text)
        nodes = NodeSet(text, resolver=resolver)
        if len(nodes) > _MAX_HOSTS:
            raise BadInput(f"'{displayable(text)}' is more than {_MAX_HOSTS:,} hosts.")
        names = tuple(str(name) for name in nodes)
    except (NodeSetException, GroupResolverError, GroupSourceError) as error:
        raise BadInput(
            f"'{displayable(text)}' is not a set of hosts: {displayable(str(error))}.",
            "Write for example web[1-8],db3, or @GROUP.",
        ) from error
    if not names:
        raise BadInput(f"'{displayable(text)}' names no host.")
    for name in names:
        if not _HOST.fullmatch(name):
            raise BadInput(f"'{displayable(name)}' is not the name of a host.")
    return names


def _check_ranges(text: str) -> None:
    """Raise BadInput for a range that ClusterShell would expand for minutes."""
    in_brackets = "".join(re.findall(r"\[[^\]]*\]", text))
    for low, high in re.findall("([0-9]+)-([0-9]+)", in_brackets):
        if len(high) > len(str(_MAX_HOSTS)) + 5 or abs(int(high) - int(low)) > _MAX_HOSTS:
            raise BadInput(f"'{low}-{high}' is more than {_MAX_HOSTS:,} hosts.")


def folded(names: tuple[str, ...] | list[str]) -> str:
    """Return hosts in the short form, as ``web[1-8],db3``."""
    from ClusterShell.NodeSet import NodeSet

    return str(NodeSet.fromlist(names))


def _is_inventory(text: str) -> bool:
    return (os.sep in text or text.endswith(_INVENTORY_ENDINGS)) and os.path.isfile(text)


def _resolver_of(path: str) -> Any:
    """Return a resolver of ClusterShell for the groups of an inventory file."""
    from ClusterShell.NodeUtils import GroupResolver, GroupSource

    groups = inventory_groups(path)
    source = GroupSource("ansible", dict(groups), allgroups=groups[_ALL])
    return GroupResolver(default_source=source)


def inventory_groups(path: str) -> Mapping[str, str]:
    """Return the node set of each group of an inventory file, and ``all``.

    The destination of a host is its ``ansible_host`` where it has one. Users, ports and keys
    belong into the configuration of ssh, which is used as it is.

    Raises:
        BadInput: the file cannot be read.
    """
    from ClusterShell.NodeSet import NodeSetException

    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        is_yaml = path.endswith(_YAML_ENDINGS)
        groups, children, addresses = _yaml_groups(text) if is_yaml else _ini_groups(text)
        # A host is one host, even if only one of its groups has its address.
        names_of = {
            group: [str(host) for pattern in patterns for host in _expanded(pattern)]
            for group, patterns in groups.items()
        }
    except (OSError, ValueError, RecursionError, NodeSetException) as error:
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        raise BadInput(
            f"The inventory {displayable(path)} cannot be read: {displayable(reason)}."
        ) from error
    hosts = {
        group: [addresses.get(name, name) for name in names] for group, names in names_of.items()
    }
    names = {*hosts, *children, *(child for below in children.values() for child in below)}
    resolved = {name: ",".join(_members(name, hosts, children, ())) for name in names}
    every = dict.fromkeys(host for members in hosts.values() for host in members)
    return {**resolved, _ALL: ",".join(every)}


_Groups = dict[str, list[str]]
_Addresses = dict[str, str]


def _members(
    group: str, groups: _Groups, children: _Groups, above: tuple[str, ...]
) -> Iterator[str]:
    yield from groups.get(group, ())
    for child in children.get(group, ()):
        if child not in (*above, group):
            yield from _members(child, groups, children, (*above, group))


def _ini_groups(text: str) -> tuple[_Groups, _Groups, _Addresses]:
    groups: _Groups = {}
    children: _Groups = {}
    addresses: _Addresses = {}
    section, kind = "ungrouped", ""
    for line in text.splitlines():
        if line.startswith("["):
            section, _, kind = line.split("]")[0].strip("[").strip().partition(":")
        elif kind == "vars":
            continue
        elif words := shlex.split(line.split(";")[0], comments=True):
            if kind == "children":
                children.setdefault(section, []).append(words[0])
                continue
            groups.setdefault(section, []).append(words[0])
            variables = dict(word.partition("=")[::2] for word in words[1:])
            if "ansible_host" in variables:
                addresses[words[0]] = variables["ansible_host"]
    return groups, children, addresses


def _yaml_groups(text: str) -> tuple[_Groups, _Groups, _Addresses]:
    import yaml  # comes with ClusterShell

    groups: _Groups = {}
    children: _Groups = {}
    addresses: _Addresses = {}

    def add(name: str, group: Any) -> None:
        for host, variables in _mapping(_mapping(group, name).get("hosts"), name).items():
            groups.setdefault(name, []).append(str(host))
            if "ansible_host" in _mapping(variables, str(host)):
                addresses[str(host)] = str(variables["ansible_host"])
        for child, below in _mapping(_mapping(group, name).get("children"), name).items():
            children.setdefault(name, []).append(str(child))
            add(str(child), below)

    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    for name, group in _mapping(content, "file").items():
        add(str(name), group)
    return groups, children, addresses


def _mapping(value: Any, name: str) -> dict[Any, Any]:
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"{name} has something else than names with values")
    return value or {}


def _expanded(pattern: str) -> Any:
    """Return the names of a pattern; Ansible writes ranges as ``[01:50]`` and ``[1:9:2]``."""
    from ClusterShell.NodeSet import NodeSet

    text = _RANGE.sub(
        lambda match: f"[{match[1]}-{match[2]}{f'/{match[3]}' if match[3] else ''}]", pattern
    )
    _check_ranges(text)
    return NodeSet(text)
