"""How much lies behind every node of a graph: exact, with cycles, each node visited a few times only.

Nodes of a cycle reach the same, so each cycle counts as one node. From the ends backwards, what a node
reaches is the union of what its successors reach, as bits of an integer. Of many labels only a block is
looked at once, in the part of the graph that leads to it: memory stays bounded, and time is close to the
number of edges where what a node reaches is a small part of the whole.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["reached"]

BLOCK = 4_096
"""Labels that are looked at together: a node then has at most 512 bytes of them."""


def reached(
    successors: Sequence[Iterable[int]], kinds: Sequence[Sequence[Iterable[int]]]
) -> list[list[int]]:
    """For each kind of label, how many different ones each node and all that it leads to have.

    A kind lists the labels of each node.
    """
    group_of, groups = _condensed(successors)
    ahead = [
        {group_of[far] for node in group for far in successors[node]} - {number}
        for number, group in enumerate(groups)
    ]
    found = []
    for labels in kinds:
        own = [{label for node in group for label in labels[node]} for group in groups]
        counts = _counted(ahead, own)
        found.append([counts[group] for group in group_of])
    return found


def _condensed(successors: Sequence[Iterable[int]]) -> tuple[list[int], list[list[int]]]:
    """The strongly connected components, each behind those it leads to, and the one of each node (Tarjan)."""
    count = len(successors)
    index, low, group_of = [-1] * count, [0] * count, [-1] * count
    groups: list[list[int]] = []
    stack: list[int] = []
    met = 0
    for start in range(count):
        if index[start] >= 0:
            continue
        index[start] = low[start] = met
        met += 1
        stack.append(start)
        path = [(start, iter(successors[start]))]
        while path:
            node, rest = path[-1]
            for far in rest:
                if index[far] < 0:
                    index[far] = low[far] = met
                    met += 1
                    stack.append(far)
                    path.append((far, iter(successors[far])))
                    break
                if group_of[far] < 0:
                    low[node] = min(low[node], index[far])
            else:
                path.pop()
                if path:
                    before = path[-1][0]
                    low[before] = min(low[before], low[node])
                if low[node] == index[node]:
                    group: list[int] = []
                    while not group or group[-1] != node:
                        group.append(stack.pop())
                        group_of[group[-1]] = len(groups)
                    groups.append(group)
    return group_of, groups


def _counted(ahead: list[set[int]], own: list[set[int]]) -> list[int]:
    """How many labels each group reaches; groups stand behind those that they lead to."""
    # Numbered in that order, labels of one block are close to each other, and so is what leads to them.
    numbers: dict[int, int] = {}
    for labels in own:
        for label in labels:
            numbers.setdefault(label, len(numbers))
    counts = [0] * len(ahead)
    if len(numbers) <= BLOCK:
        bits = [0] * len(ahead)
        for group, behind in enumerate(ahead):
            some = 0
            for label in own[group]:
                some |= 1 << numbers[label]
            for far in behind:
                some |= bits[far]
            bits[group] = some
            counts[group] = some.bit_count()
        return counts
    back: list[list[int]] = [[] for _ in ahead]
    blocks: dict[int, dict[int, int]] = defaultdict(dict)
    for group, behind in enumerate(ahead):
        for far in behind:
            back[far].append(group)
        for label in own[group]:
            block, place = divmod(numbers[label], BLOCK)
            blocks[block][group] = blocks[block].get(group, 0) | 1 << place
    for held in blocks.values():
        _count_block(ahead, back, held, counts)
    return counts


def _count_block(
    ahead: list[set[int]], back: list[list[int]], held: dict[int, int], counts: list[int]
) -> None:
    leading, waiting = set(held), list(held)
    while waiting:
        for before in back[waiting.pop()]:
            if before not in leading:
                leading.add(before)
                waiting.append(before)
    bits: dict[int, int] = {}
    for group in sorted(leading):
        some = held.get(group, 0)
        for far in ahead[group]:
            if far in bits:
                some |= bits[far]
        bits[group] = some
        counts[group] += some.bit_count()
