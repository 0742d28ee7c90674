"""Which hosts are meant: node sets, groups, inventory files of Ansible, standard input."""

import configparser
import os
import re
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
_RANGE = re.compile(r"\[([0-9]+):([0-9]+)\]")
_ALL = "all"


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
    if text == STANDARD_INPUT:
        text = ",".join(line.strip() for line in sys.stdin if line.strip())
    if text.startswith("-"):
        raise BadInput(f"'{displayable(text)}' is no host: a name cannot begin with '-'.")
    try:
        resolver = None if inventory is None else _resolver_of(inventory)
        names = tuple(str(name) for name in NodeSet(text, resolver=resolver))
    except (NodeSetException, GroupResolverError, GroupSourceError) as error:
        raise BadInput(
            f"'{displayable(text)}' is no set of hosts: {displayable(str(error))}.",
            "Write for example web[1-8],db3, or @GROUP.",
        ) from error
    if not names:
        raise BadInput(f"'{displayable(text)}' names no host.")
    for name in names:
        if not _HOST.fullmatch(name):
            raise BadInput(f"'{displayable(name)}' is not the name of a host.")
    return names


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
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        is_yaml = path.endswith(_YAML_ENDINGS)
        groups, children = _yaml_groups(text) if is_yaml else _ini_groups(text)
    except (OSError, ValueError, configparser.Error) as error:
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        raise BadInput(
            f"The inventory {displayable(path)} cannot be read: {displayable(reason)}."
        ) from error
    names = {*groups, *children, *(child for below in children.values() for child in below)}
    resolved = {name: ",".join(_members(name, groups, children, ())) for name in names}
    every = dict.fromkeys(host for hosts in groups.values() for host in hosts)
    return {**resolved, _ALL: ",".join(every)}


_Groups = dict[str, list[str]]


def _members(
    group: str, groups: _Groups, children: _Groups, above: tuple[str, ...]
) -> Iterator[str]:
    yield from groups.get(group, ())
    for child in children.get(group, ()):
        if child not in (*above, group):
            yield from _members(child, groups, children, (*above, group))


def _ini_groups(text: str) -> tuple[_Groups, _Groups]:
    groups: _Groups = {}
    children: _Groups = {}
    section, kind = "ungrouped", ""
    for line in text.splitlines():
        words = line.split("#")[0].split(";")[0].split()
        if not words:
            continue
        if words[0].startswith("["):
            section, _, kind = line.strip().strip("[]").partition(":")
        elif kind == "children":
            children.setdefault(section, []).append(words[0])
        elif not kind:
            variables = dict(word.partition("=")[::2] for word in words[1:])
            groups.setdefault(section, []).append(_destination(words[0], variables))
    return groups, children


def _yaml_groups(text: str) -> tuple[_Groups, _Groups]:
    import yaml  # comes with ClusterShell

    groups: _Groups = {}
    children: _Groups = {}

    def add(name: str, group: Any) -> None:
        if group is not None and not isinstance(group, dict):
            raise ValueError(f"the group {name} is no mapping")
        for host, variables in ((group or {}).get("hosts") or {}).items():
            groups.setdefault(name, []).append(_destination(str(host), variables or {}))
        for child, below in ((group or {}).get("children") or {}).items():
            children.setdefault(name, []).append(str(child))
            add(str(child), below)

    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    if not isinstance(content, dict):
        raise ValueError("it is no mapping of groups")
    for name, group in content.items():
        add(str(name), group)
    return groups, children


def _destination(host: str, variables: Mapping[str, object]) -> str:
    """Return the destination of a host as a node set; Ansible writes ranges as ``[01:50]``."""
    return _RANGE.sub(r"[\1-\2]", str(variables.get("ansible_host", host)))
