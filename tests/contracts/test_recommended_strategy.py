"""Without --strategy, the recommended one deletes, and standard error says which it is."""

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.contracts.test_policy import write_policy
from tests.needs import needs_engine
from tests.trees import many_directories


@pytest.fixture
def tree(tmpfs: Path) -> Path:
    root = tmpfs / "tree"
    many_directories(root, 20, 30)
    (root / "directory-00001" / "old.log").write_bytes(b"x" * 5_000)
    os.utime(root / "directory-00001" / "old.log", (0, 0))
    return root


def recommended(cli: Cli, tree: Path) -> str:
    return str(cli.run("estimate", "--no-measuring", tree, "--json").object()["recommended"])


def test_the_recommended_strategy_deletes_and_is_named(cli: Cli, tree: Path) -> None:
    name = recommended(cli, tree)
    done = cli.run("delete", tree, "--yes", "--json").expect(0)
    assert f"{name} is the recommended strategy" in done.stderr
    (job,) = cli.jobs()
    assert job["strategy"] == name
    assert not tree.exists()


def test_a_dry_run_names_it_and_deletes_nothing(cli: Cli, tree: Path) -> None:
    done = cli.run("delete", tree, "--dry-run", "--json").expect(0)
    assert json.loads(done.stdout)["strategy"] == recommended(cli, tree)
    assert tree.exists()


def test_only_a_strategy_that_can_filter_is_chosen(cli: Cli, tree: Path) -> None:
    done = cli.run("delete", tree, "--yes", "--json", "--name", "*.log").expect(0)
    (job,) = cli.jobs()
    assert f"{job['strategy']} is the recommended strategy" in done.stderr
    assert not (tree / "directory-00001" / "old.log").exists()
    assert len(list(tree.rglob("*"))) == 20 + 20 * 30


def test_what_a_policy_forbids_is_not_chosen(cli: Cli, tree: Path) -> None:
    write_policy(tree, 'strategies = ["xargs"]\n')
    cli.run("delete", tree, "--yes", "--json").expect(0)
    (job,) = cli.jobs()
    assert job["strategy"] == "xargs"


def test_threads_and_shares_need_the_engine(cli: Cli, tree: Path) -> None:
    needs_engine()
    cli.run("delete", tree, "--yes", "--json", "--threads", "2").expect(0)
    (job,) = cli.jobs()
    assert job["strategy"] == "parallel"


def test_nothing_that_can_run_is_one_sentence(cli: Cli, tree: Path) -> None:
    write_policy(tree, 'strategies = ["rsync"]\n')  # which cannot filter
    refused = cli.run("delete", tree, "--yes", "--json", "--name", "*.log").expect(4)
    refused.assert_one_sentence()
    assert tree.exists()


def test_an_estimate_counts_only_what_the_filters_select(cli: Cli, tree: Path) -> None:
    arguments = ("estimate", "--no-measuring", "--older-than", "30d", "--min-size", "4k", tree)
    shape = cli.run(*arguments, "--json").expect(0).object()
    assert (shape["entries"], shape["freed_inodes_max"]) == (1, 1)
    by_name = {each["strategy"]: each for each in shape["strategies"]}
    assert by_name["find"]["syscalls"]["unlinkat"] == 1
    assert not by_name["rm"]["feasible"]
    text = cli.run(*arguments).expect(0).stdout.decode()
    assert "1 of 622 entries match the filters" in text


def test_a_quick_estimate_takes_no_filters(cli: Cli, tree: Path) -> None:
    refused = cli.run("estimate", "--quick", "--name", "*.log", tree).expect(2)
    refused.assert_one_sentence()
